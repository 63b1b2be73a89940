/** Detects `X-Forwarded-For` on a node that trusts no proxy: the settings may lack a proxy. */
import type { IncomingMessage } from 'node:http';
import { BOGUS_ADDRESS } from '../base/network-address.ts';

export interface ForwardedWatch {
  readonly isSeen: boolean;
  see(request: IncomingMessage): void;
}

/** @param onFirst called only once; not called for a header with only the doctor's bogus address */
export function createForwardedWatch(onFirst: () => void): ForwardedWatch {
  let isSeen = false;
  return {
    get isSeen() {
      return isSeen;
    },
    see({ headers: { 'x-forwarded-for': addresses } }) {
      if (isSeen || addresses === undefined || addresses === BOGUS_ADDRESS) return;
      isSeen = true;
      onFirst();
    },
  };
}
