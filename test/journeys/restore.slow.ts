/** Backup and restore with Compose and in Kubernetes, and of both stores at once. */
import { defineRestores } from './restores.ts';

defineRestores('others');
