/** Connections to Redis that send no command before the server at the other end is accepted. */
import type { Socket } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { SentinelConnector, StandaloneConnector } from 'ioredis/built/connectors/index.js';

export type RedisInfo = Readonly<Record<string, string>>;

/** Decides from the INFO of Redis whether commands may be sent over this new connection. */
export type AcceptRedis = (info: RedisInfo, connection: Socket) => boolean;

export interface RedisGuard {
  readonly accepts: AcceptRedis;
  /** Tells operators why the token store cannot be used; undefined if it can. */
  readonly reason: string | undefined;
  /** True if all open connections of this node lead to masters with these replication ids. */
  usesOnly(ids: readonly string[]): boolean;
  close(): void;
}

/**
 * Returns a connector for ioredis. It calls `accepts` with the INFO that ioredis requests on each new
 * connection, before any command is sent, including those that ioredis resends after a disconnect.
 * A connection that is not accepted is closed and reopened after the usual pause.
 */
export function guardedConnector(accepts: AcceptRedis, isSentinel: boolean): NonNullable<RedisOptions['Connector']> {
  type Options = ConstructorParameters<typeof StandaloneConnector>[0];
  if (isSentinel) {
    return class extends SentinelConnector {
      constructor(options: unknown) {
        super(options as ConstructorParameters<typeof SentinelConnector>[0]);
      }
      override check(info: RedisInfo): boolean {
        return super.check(info) && accepts(info, this.stream);
      }
    };
  }
  return class extends StandaloneConnector {
    constructor(options: unknown) {
      super(options as Options);
    }
    override check(info: RedisInfo): boolean {
      return accepts(info, this.stream);
    }
  };
}
