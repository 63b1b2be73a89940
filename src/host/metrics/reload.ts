/** Whether the settings that were last read are in force, and since when. */
import { Gauge, type Registry } from 'prom-client';

/** Told of each reload: the settings were taken over, or refused. */
export interface ReloadOutcomes {
  settingsReloaded(isTaken: boolean): void;
}

export function createReloadMetrics(registry: Registry): ReloadOutcomes {
  const registers = [registry];
  const isTaken = new Gauge({
    name: 'gatehouse_config_last_reload_successful',
    help: 'Whether the settings were taken over when they were last read (1) or refused (0).',
    registers,
  });
  const takenAt = new Gauge({
    name: 'gatehouse_config_last_reload_success_timestamp_seconds',
    help: 'When settings were last taken over, in seconds since the epoch.',
    registers,
  });
  isTaken.set(1);
  takenAt.setToCurrentTime();
  return {
    settingsReloaded(isTakenOver) {
      isTaken.set(isTakenOver ? 1 : 0);
      if (isTakenOver) takenAt.setToCurrentTime();
    },
  };
}
