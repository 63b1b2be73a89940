/** What the pages of a person's connections print. */
import type { ListView } from '../lists.ts';
import type { ReachedOrganization } from '../view-data.ts';
import type { Moment } from '../words/moment.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly connections: ConnectionsView;
    readonly connection: ConnectionView;
  }
}

export interface ConnectionsView {
  readonly notice: string | undefined;
  readonly connections: readonly ConnectionRow[];
  readonly list: ListView;
  /** What each of them reaches now, as `2 organizations, 5 warehouses`. */
  readonly reach: string;
  readonly disconnectAllUrl: string;
}

export interface ConnectionRow {
  readonly url: string;
  readonly name: string;
  /** The owner's name, or 'the operator of this service'. */
  readonly providedBy: string;
  readonly isSuspended: boolean;
  readonly connected: Moment;
  /** Absent while nothing was asked for. */
  readonly lastUsed: Moment | undefined;
  /**
   * What changed in what it reaches, as `1 added, 2 removed`; empty where nothing did, absent where
   * what was approved is not known.
   */
  readonly changes: string | undefined;
  /** Organizations of the person that do not let it in any more. */
  readonly bars: readonly { readonly organization: string; readonly since: Moment }[];
  readonly disconnectUrl: string;
}

export interface ConnectionView extends ConnectionRow {
  /** The last time it was approved; absent where that was the first time. */
  readonly approved: Moment | undefined;
  readonly organizations: readonly ReachedOrganization[];
}

/** Beside "Also disconnect …"; undefined where nothing acts for the person. */
export function connectionsInWords(connections: number): string | undefined {
  if (connections === 0) return undefined;
  return connections === 1
    ? 'the client that acts for you'
    : `all ${connections} clients that act for you`;
}
