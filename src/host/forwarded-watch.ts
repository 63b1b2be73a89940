/** Notices `X-Forwarded-For` on requests, for a node that believes none: then a proxy is not declared. */
import type { IncomingMessage } from 'node:http';
import { BOGUS_ADDRESS } from '../base/network-address.ts';

export interface ForwardedWatch {
  readonly isSeen: boolean;
  see(request: IncomingMessage): void;
}

/** @param onFirst called once. What the doctor makes up does not count, unless a proxy added to it. */
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
