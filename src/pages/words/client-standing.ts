/** Describes who asks: when a client was registered, who has connected it, and who checked it. */
import { type ClientStanding, MAX_COUNTED } from '../../authorizations/client-standing.ts';

/** The data for `partials/standing`. */
export interface DescribedStanding {
  /** For example `Registered 3 days ago · connected by 2 people, none of your organization · …`. */
  readonly facts: string;
  readonly isWarning: boolean;
}

/** Pages warn about a client with a lower age or with fewer connected users than these. */
const USUAL_DAYS = 7;
const USUAL_PEOPLE = 5;
const DAY_MS = 86_400_000;

/** @param now milliseconds since the epoch */
export function describeStanding(standing: ClientStanding, now: number): DescribedStanding {
  const { isOfOperator, isVerified, registeredAt, ownedSince, people, isConnected } = standing;
  const daysSince = (time: Date) => Math.max(0, Math.floor((now - time.getTime()) / DAY_MS));
  // A client can behave differently under a new owner, although its age and people stay.
  const days = daysSince(ownedSince ?? registeredAt);
  const check = isVerified ? 'checked by the operator' : 'not checked by the operator';
  const facts = [
    `Registered ${ageText(daysSince(registeredAt))}`,
    ...(ownedSince && !isOfOperator ? [`given to its present owner ${ageText(days)}`] : []),
    `connected by ${peopleText(standing)}`,
  ];
  return {
    // The operator's own clients need no check by the operator.
    facts: (isOfOperator ? facts : facts.concat(check)).join(' · '),
    isWarning:
      !isOfOperator && (days < USUAL_DAYS || people + (isConnected ? 1 : 0) < USUAL_PEOPLE),
  };
}

function ageText(days: number): string {
  if (days === 0) return 'today';
  if (days < 60) return ago(days, 'day');
  return days < 730 ? ago(Math.floor(days / 30), 'month') : ago(Math.floor(days / 365), 'year');
}

const ago = (count: number, unit: string): string =>
  `${count} ${unit}${count === 1 ? '' : 's'} ago`;

/** Describes the other people who connected the client. */
function peopleText({ people, hasColleagues, isConnected }: ClientStanding): string {
  if (people === 0) return isConnected ? 'no one else' : 'no one yet';
  const isMore = people > MAX_COUNTED;
  const number = Math.min(people, MAX_COUNTED).toLocaleString('en');
  const noun = `${isConnected ? 'other ' : ''}${people === 1 ? 'person' : 'people'}`;
  const [some, none] = people === 1 ? ['who is', 'not'] : ['some', 'none'];
  // If there are more than `MAX_COUNTED`, only the counted ones were compared with the user.
  const which = hasColleagues ? some : isMore ? undefined : none;
  return `${isMore ? 'more than ' : ''}${number} ${noun}${which ? `, ${which} of your organization` : ''}`;
}
