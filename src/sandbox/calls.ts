/** Who called the warehouse API, and how each call was decided: kept to be shown. */
import type { Caller, Identified, Introspector } from '../resource-server/resource-server.ts';

export interface Call {
  readonly at: Date;
  /** The GraphQL operation, in one line. */
  operation: string;
  readonly who: string;
  readonly decidedBy: Identified['decidedBy'];
  /** Of the refusal, in place of an answer. */
  readonly refusedWith?: number;
  /** Milliseconds until it was known who calls. */
  readonly took: number;
  /** Of one that stays open. */
  subscription?: Subscription;
}

export interface Subscription {
  events: number;
  end?: { readonly at: Date; readonly because: 'access' | 'left' };
}

export interface Calls {
  /** The latest first. */
  readonly list: readonly Call[];
  /** Identifies like the introspector, and notes it. @param noted told of the call. */
  noting(noted: (call: Call) => void): Introspector;
}

const MOST = 50;

export function createCalls(introspector: Introspector): Calls {
  const list: Call[] = [];
  return {
    list,
    noting: (noted) => ({
      ...introspector,
      async identify(request) {
        const at = new Date();
        const began = performance.now();
        const identified = await introspector.identify(request);
        const { caller, refusal, decidedBy } = identified;
        const call: Call = {
          at,
          operation: '',
          who: caller ? nameOf(caller) : 'nobody',
          decidedBy,
          ...(refusal && { refusedWith: refusal.status }),
          took: performance.now() - began,
        };
        list.unshift(call);
        list.length = Math.min(list.length, MOST);
        noted(call);
        return identified;
      },
    }),
  };
}

/** A person by the address they sign in with. */
function nameOf(caller: Caller): string {
  if (caller.method === 'client_credentials') return `the machine client ${caller.clientId}`;
  const person = caller.username ?? caller.subject;
  return caller.method === 'api_key' ? `${person}, by an API key` : person;
}
