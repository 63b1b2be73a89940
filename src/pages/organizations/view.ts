/** The data that the pages of organizations print. */
import type { Message, Text } from '../../base/message.ts';
import type { ListView } from '../lists.ts';
import type { ClientLink, DescribedStanding } from '../words/client-standing.ts';
import type { Moment } from '../words/moment.ts';
import type { Tile } from '../words/tile.ts';
import type { rowOf, warehouseFilter } from './organizations.ts';
import type { ReachPart } from './reach-parts.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly organizations: {
      readonly notice: Text | undefined;
      readonly organizations: readonly ReturnType<typeof rowOf>[];
      readonly list: ListView;
    };
    readonly organization: {
      readonly name: string;
      readonly lead: Message;
      readonly notice: Text | undefined;
      readonly asksFirst: boolean;
      readonly allowsApiKeys: boolean;
      readonly policyUrl: string;
      readonly url: string;
      /** All parts, with the chosen warehouse. */
      readonly allUrl: string;
      readonly warehouses: ReturnType<typeof warehouseFilter>;
      readonly parts: readonly ReachPart[];
    };
    readonly 'organization-policy': {
      readonly name: string;
      readonly url: string;
      readonly action: string;
      readonly notice: Text | undefined;
      readonly problems: readonly FormProblem[];
      readonly asksFirst: boolean;
      readonly allowsApiKeys: boolean;
      /** Marks of the listed clients and of `others`, as a page showed them: only these can be approved. */
      readonly shown: string;
      /** Connected clients about which the organization has not decided. */
      readonly clients: readonly {
        readonly id: string;
        readonly name: string;
        readonly detail: Message;
        readonly isChosen: boolean;
      }[];
      readonly total: number;
      readonly found: number;
      /** Undefined if all clients are listed. */
      readonly search: string | undefined;
      /** The ids of the chosen clients that this page does not list: an earlier one did. */
      readonly others: readonly string[];
    };
    readonly 'organization-client': {
      readonly name: string;
      readonly tile: Tile;
      readonly marks: ReachRow['marks'];
      readonly organization: string;
      readonly url: string;
      readonly maker: Text;
      /** The hosts to which the client sends people, separated by commas. */
      readonly hosts: string;
      readonly standing: DescribedStanding | undefined;
      /** When the first member connected it. */
      readonly requested: Moment | undefined;
      /** Since when, and by whom, it is approved, declined or blocked. */
      readonly decided: Message | undefined;
      readonly parts: readonly ReachPart[];
      readonly links: readonly ClientLink[];
      /** The form of the decision; undefined unless the client waits for one, or was declined. */
      readonly decision:
        | {
            readonly action: string;
            /** A mark of what the page shows: the *Approve* button approves exactly this. */
            readonly shown: string;
            readonly sentence: string;
            readonly maxLength: number;
          }
        | undefined;
      /** The link that blocks or unblocks the client in the whole organization. */
      readonly block: ReachRow['action'];
      readonly notice: Text | undefined;
      readonly problems: readonly FormProblem[];
    };
  }
}

export interface ReachRow {
  readonly id: string;
  readonly name: string;
  /** The page of the client; absent for other rows. */
  readonly url?: string;
  readonly tile?: Tile;
  /** Identifies the row: an email address, the provider of a client, or the end of a key; may be empty. */
  readonly detail: Text;
  readonly role: Message | undefined;
  /** Marks such as `suspended`, `blocked`, `you`. */
  readonly marks: readonly { readonly text: Message; readonly isWarning: boolean }[];
  readonly facts: readonly ReachFact[];
  /** Where to end this access; undefined if the user may not end it. */
  readonly action: { readonly url: string; readonly label: Message; readonly isEnd: boolean } | undefined;
}

export interface ReachFact {
  readonly label: Message;
  /** Exactly one of `text` and `moment` is set. */
  readonly text?: Text;
  readonly moment?: Moment;
}
