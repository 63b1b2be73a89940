/** Detects `X-Forwarded-For` on a node that trusts no proxy: the settings may lack a proxy. */
import type { IncomingMessage } from 'node:http';
import { BOGUS_ADDRESS } from '../base/network-address.ts';

/** @param onFirst called only once; not called for a header with only the doctor's bogus address */
export function createForwardedWatch(onFirst: () => void) {
  let isSeen = false;
  return {
    get isSeen(): boolean {
      return isSeen;
    },
    see({ headers: { 'x-forwarded-for': addresses } }: IncomingMessage): void {
      if (isSeen || addresses === undefined || addresses === BOGUS_ADDRESS) return;
      isSeen = true;
      onFirst();
    },
  };
}
