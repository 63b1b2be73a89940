/** `operator changes`: allows connected systems to push more removals than the limit. */
import type { Command } from 'commander';
import { systemClock } from '../base/clock.ts';
import { recordRemovals } from '../changes/removal-limit.ts';
import { wholeNumber } from './command/arguments.ts';
import type { Operator } from './command/operator.ts';

const MAX_REMOVALS = 1_000_000;

export function addChangesCommand(program: Command, { run }: Operator): void {
  const changes = program.command('changes').description('changes that other systems push (POST /changes)');
  changes
    .command('allow')
    .description(
      'let pushed changes remove this many people, memberships and rights on top of ' +
        'import.removals_per_hour, within the next hour',
    )
    .argument('<removals>', 'how many', wholeNumber(MAX_REMOVALS))
    .action((removals: number) =>
      run(async ({ database }) => {
        await recordRemovals(database, systemClock, -removals);
        const text = `Pushed changes may remove ${removals} more records within the next hour. Send the held_back lines again.`;
        return { value: { allowed: removals }, text };
      }),
    );
}
