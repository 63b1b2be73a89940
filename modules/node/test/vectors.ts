/** The test vectors of the wire contract, `docs/wire/*.json`. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

const FOLDER = path.join(import.meta.dirname, '../../../docs/wire');

const casesOf = (name: string) => JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8')).cases;

interface RefusalVector {
  readonly status: number;
  readonly www_authenticate?: string;
  readonly retry_after?: string;
}

export interface AnswerVector {
  readonly title: string;
  readonly sent_by_service: boolean;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly outcome: { readonly caller: object } | { readonly refusal: RefusalVector; readonly reason?: string };
}

export interface RequestVector {
  readonly title: string;
  readonly query: string;
  readonly content_type: string;
  readonly authorization: readonly string[];
  readonly outcome: { readonly token: string } | { readonly refusal: RefusalVector };
}

export interface StreamVector {
  readonly title: string;
  readonly sent_by_service: boolean;
  readonly pieces: readonly { readonly after_ms: number; readonly text: string | null }[];
  readonly events: readonly string[];
}

export interface AnswerMembers {
  readonly exp?: number;
  readonly organizations: readonly string[];
  readonly withheld?: readonly string[];
}

export interface CacheStep {
  readonly at_ms: number;
  readonly stream?: 'opens' | 'breaks' | 'old ends' | 'new breaks';
  readonly first_heartbeat_ms?: number;
  readonly heartbeats?: 'stop';
  readonly service?: 'silent' | 'answers';
  readonly clock_set_to_ms?: number;
  readonly answer?: Readonly<Record<string, AnswerMembers | null>>;
  readonly line?: string;
  readonly on?: 'old' | 'new';
  readonly call?: string;
  readonly decided_by?: string;
  readonly answered_at_ms?: number;
  readonly refused?: true;
  readonly ended?: readonly string[];
}

export interface CacheVector {
  readonly title: string;
  readonly answers: Readonly<Record<string, AnswerMembers | null>>;
  readonly steps: readonly CacheStep[];
}

export const ANSWERS: readonly AnswerVector[] = casesOf('introspection.json');
export const REQUESTS: readonly RequestVector[] = casesOf('authorization-headers.json');
export const STREAMS: readonly StreamVector[] = casesOf('stream.json');
export const TIMELINES: readonly CacheVector[] = casesOf('cache.json');
