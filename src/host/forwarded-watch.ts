/** Detects `X-Forwarded-For` on a node that trusts no proxy: one may be undeclared. */
import type { IncomingMessage } from 'node:http';
import { BOGUS_ADDRESS } from '../base/network-address.ts';

export interface ForwardedWatch {
  readonly isSeen: boolean;
  see(request: IncomingMessage): void;
}

/** @param onFirst called once, but not for the doctor's bogus address unless a proxy added to it */
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
