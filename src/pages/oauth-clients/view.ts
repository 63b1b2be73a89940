/** The data that the pages of a user's OAuth clients print, except those of one client. */
import type { Message, Text } from '../../base/message.ts';
import type { ListView } from '../lists.ts';
import type { FormProblem } from '../view-data.ts';
import type { Moment } from '../words/moment.ts';
import type { Tile } from '../words/tile.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-clients': {
      readonly notice: Text | undefined;
      readonly clients: readonly OAuthClientRow[];
      readonly list: ListView;
      /** The maximum number of clients per user. */
      readonly limit: number;
      readonly hasRoom: boolean;
    };
    readonly 'oauth-client-new': {
      readonly notice: Text | undefined;
      readonly form: ClientFormView;
    };
  }
}

export interface OAuthClientRow {
  readonly tile: Tile;
  readonly url: string;
  readonly id: string;
  readonly name: string;
  readonly isSuspended: boolean;
  readonly created: Moment;
  readonly connectedPeople: Message;
  /** Undefined for a client that was never used. */
  readonly lastUsed: Moment | undefined;
  /** Number of open problems of the last days. */
  readonly problems: number;
  readonly problemsUrl: string;
}

/** The form of a new or an existing client. */
export interface ClientFormView {
  readonly action: string;
  /** Present only for a new client: unique to each rendered form. */
  readonly creationKey?: string;
  /** A digest of the client when the form was rendered (`stampOf`); undefined for a new client. */
  readonly drawnFrom: string | undefined;
  /** Shown above the form; a problem with a field is also shown next to the field. */
  readonly problems: readonly FormProblem[];
  readonly name: string;
  /** Undefined for a client to which users are never redirected. */
  readonly rows: readonly RedirectUriRow[] | undefined;
  readonly canAddRow: boolean;
  readonly button: Message;
}

export interface RedirectUriRow {
  readonly uri: string;
  /** Warnings about a URI that is allowed but worth checking. */
  readonly warnings: readonly Text[];
  /** True for an empty row that the user has just added. */
  readonly isNew: boolean;
}
