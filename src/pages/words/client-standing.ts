/** Describes a client's age, how many users have connected it, and whether the operator has verified it. */
import { type ClientStanding, MAX_COUNTED } from '../../authorizations/client-standing.ts';
import { type Message, message } from '../../base/message.ts';
import { type ClientLinks, LINKS } from '../../clients/client.ts';

export type DescribedStanding = ReturnType<typeof describeStanding>;
export type ClientLink = ReturnType<typeof linksOf>[number];

export const linksOf = ({ links }: { readonly links: ClientLinks }) =>
  LINKS.flatMap((kind) => {
    const url = links[kind];
    return url === undefined ? [] : [{ kind, host: new URL(url).host, url }];
  });

/** Pages warn about a client that is younger than this many days, or has fewer connected users than `USUAL_PEOPLE`. */
const USUAL_DAYS = 7;
const USUAL_PEOPLE = 5;
const DAY_MS = 86_400_000;

/** Returns the data for the view `partials/standing`. @param now milliseconds since the epoch */
export function describeStanding(standing: ClientStanding, now: number) {
  const { isOfOperator, isVerified, registeredAt, ownedSince, people, isConnected } = standing;
  const daysSince = (time: Date) => Math.max(0, Math.floor((now - time.getTime()) / DAY_MS));
  // Count the days since the client got a new owner, because a new owner may change how the client behaves.
  const days = daysSince(ownedSince ?? registeredAt);
  return {
    /** For example `Registered 3 days ago · connected by 2 people, none in your organization · …`. */
    facts: message('standing.facts', {
      age: ageOf(daysSince(registeredAt)),
      hasNewOwner: String(Boolean(ownedSince) && !isOfOperator),
      owned: ageOf(days),
      people: peopleOf(standing),
      // The operator need not verify the operator's own clients.
      check: isOfOperator ? 'own' : String(isVerified),
    }),
    isWarning: !isOfOperator && (days < USUAL_DAYS || people + (isConnected ? 1 : 0) < USUAL_PEOPLE),
  };
}

function ageOf(days: number): Message {
  if (days < 60) return message('standing.days', { count: days });
  return days < 730
    ? message('standing.months', { count: Math.floor(days / 30) })
    : message('standing.years', { count: Math.floor(days / 365) });
}

function peopleOf({ people, hasColleagues, isConnected }: ClientStanding): Message {
  const isMore = people > MAX_COUNTED;
  return message('standing.people', {
    count: Math.min(people, MAX_COUNTED),
    isMore: String(isMore),
    isConnected: String(isConnected),
    // Colleagues are found only among the users that the query reads. Further users may be colleagues.
    colleagues: hasColleagues ? 'some' : isMore ? 'unknown' : 'none',
  });
}
