/** Backup and restore as an operator with systemd does it. */
import { defineRestores } from './restores.ts';

defineRestores('systemd');
