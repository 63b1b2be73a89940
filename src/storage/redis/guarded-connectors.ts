/** Connections to Redis over which no command goes before the server behind them is accepted. */
import type { Socket } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { SentinelConnector, StandaloneConnector } from 'ioredis/built/connectors/index.js';

export type RedisInfo = Readonly<Record<string, string>>;

/** Whether commands may be sent over this new connection to the Redis that says this of itself. */
export type AcceptRedis = (info: RedisInfo, connection: Socket) => boolean;

export interface RedisGuard {
  readonly accepts: AcceptRedis;
  /** Why the token store cannot be used, for operators; undefined if it can. */
  readonly reason: string | undefined;
  /** Whether each open connection of this node leads to one of the masters with these replication ids. */
  usesOnly(ids: readonly string[]): boolean;
  close(): void;
}

/**
 * The connector for ioredis. It is asked with the INFO of the ready check, before anything is sent,
 * also before ioredis sends again what a broken connection left unanswered. A connection that is not
 * accepted is closed and opened again after the usual pause.
 */
export function guardedConnector(
  accepts: AcceptRedis,
  isSentinel: boolean,
): NonNullable<RedisOptions['Connector']> {
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
