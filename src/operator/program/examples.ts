/** Examples for the help of every command, exactly as they would be typed. */
import type { Command } from 'commander';

/** Keyed by the words of the command; each example omits `gatehouse`. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  'accounts add': [
    'accounts add --email ada@example.com --name "Ada Lovelace" --invite',
    'accounts add --email ada@example.com --name "Ada Lovelace" --password-file ada.txt',
  ],
  'accounts invite': ['accounts invite ada@example.com'],
  'accounts list': [
    'accounts list --state suspended',
    'accounts list --match example.com --limit 50 --after acc_VcX0bq7mWcXk2f1S',
  ],
  'accounts update': [
    'accounts update ada@example.com --name "Ada King"',
    'accounts update ada@example.com --new-email ada.king@example.com',
  ],
  'accounts delete': ['accounts delete ada@example.com --reason "ticket 4711"'],
  'accounts suspend': ['accounts suspend ada@example.com'],
  'accounts resume': ['accounts resume ada@example.com'],
  'links list': ['links list ada@example.com'],
  'links remove': ['links remove ada@example.com --provider platform'],
  'passkeys list': ['passkeys list ada@example.com'],
  'passkeys remove': ['passkeys remove ada@example.com --passkey pk_VcX0bq7mWcXk2f1S'],
  'organizations add': ['organizations add --name "Northern Logistics"'],
  'organizations list': ['organizations list --match north'],
  'organizations show': ['organizations show org_VcX0bq7mWcXk2f1S'],
  'organizations update': [
    'organizations update org_VcX0bq7mWcXk2f1S --name "Northern Lights"',
    'organizations update org_VcX0bq7mWcXk2f1S --external-id 4711',
  ],
  'organizations delete': ['organizations delete org_VcX0bq7mWcXk2f1S'],
  'organizations policy': [
    'organizations policy org_VcX0bq7mWcXk2f1S',
    'organizations policy org_VcX0bq7mWcXk2f1S ask --approve-connected',
    'organizations policy org_VcX0bq7mWcXk2f1S open --api-keys allow',
  ],
  'organizations requests': ['organizations requests org_VcX0bq7mWcXk2f1S'],
  'organizations approve': ['organizations approve org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'organizations block': ['organizations block org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'organizations unblock': ['organizations unblock org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'warehouses add': ['warehouses add --organization org_VcX0bq7mWcXk2f1S --name Rotterdam'],
  'warehouses list': ['warehouses list --organization org_VcX0bq7mWcXk2f1S'],
  'warehouses show': ['warehouses show wh_c1kXq0V7bWmX2fSc'],
  'warehouses update': ['warehouses update wh_c1kXq0V7bWmX2fSc --name "Rotterdam, Europoort"'],
  'warehouses delete': ['warehouses delete wh_c1kXq0V7bWmX2fSc --yes'],
  'memberships set': [
    'memberships set --account ada@example.com --organization org_VcX0bq7mWcXk2f1S --role member',
    'memberships set --account ada@example.com --warehouse wh_c1kXq0V7bWmX2fSc --rights read,write',
  ],
  'memberships remove': ['memberships remove --account ada@example.com --organization org_VcX0bq7mWcXk2f1S'],
  'memberships list': [
    'memberships list --account ada@example.com',
    'memberships list --warehouse wh_c1kXq0V7bWmX2fSc',
    'memberships list --organization org_VcX0bq7mWcXk2f1S --role owner',
  ],
  nodes: ['nodes', 'nodes --wait 2 --within 5m'],
  'connections list': [
    'connections list --account ada@example.com',
    'connections list --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --limit 50',
  ],
  'connections end': [
    'connections end --account ada@example.com --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b',
    'connections end acc_VcX0bq7mWcXk2f1S/gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes',
  ],
  'sessions list': ['sessions list --account ada@example.com'],
  'sessions end': [
    'sessions end ses_VcX0bq7mWcXk2f1S',
    'sessions end --account ada@example.com --yes',
    'sessions end --all --yes',
  ],
  'api-keys list': ['api-keys list --account ada@example.com', 'api-keys list --match x7Qa'],
  'api-keys revoke': ['api-keys revoke key_VcX0bq7mWcXk2f1S'],
  'blocks list': [
    'blocks list --organization org_VcX0bq7mWcXk2f1S',
    'blocks list --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b',
  ],
  'problems list': [
    'problems list',
    'problems list --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b',
    'problems list --account ada@example.com --json',
  ],
  'clients add': [
    'clients add --kind confidential --name "Acme Sync" --redirect-uri https://acme.example/callback',
    'clients add --kind public --native --name "Acme Mobile" --redirect-uri com.acme.mobile:/callback',
    'clients add --kind machine --name "Nightly export"',
  ],
  'clients list': ['clients list --kind machine', 'clients list --owner ada@example.com'],
  'clients update': [
    'clients update gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --name "Acme Sync 2"',
    'clients update gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --redirect-uri https://acme.example/callback',
  ],
  'clients suspend': ['clients suspend gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'clients resume': ['clients resume gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'clients transfer': ['clients transfer gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --owner ada@example.com'],
  'clients rotate-secret': ['clients rotate-secret gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'clients remove-secret': ['clients remove-secret gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --secret=x7Qa'],
  'clients renew': ['clients renew gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes'],
  'clients delete': ['clients delete gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes'],
  revoke: [
    'revoke --account ada@example.com',
    'revoke --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes',
    'revoke --token - < leaked-token.txt',
  ],
  leaked: ['leaked - < found.txt', 'leaked report.json --reason "ticket 4711"'],
  show: ['show', 'show - < found.txt', 'show gate_ci_Vc0bq7mWcXk2f1SqXk0V7b', 'show ada@example.com'],
  audit: [
    'audit --since 7d --actor operator',
    'audit --account ada@example.com --action sign_in_failed --limit 20',
    'audit --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --json',
    'audit --import imp_VcX0bq7mWcXk2f1S',
    'audit --request req_0123456789abcdef',
  ],
  import: [
    'import people.jsonl --dry-run',
    'import people.jsonl --prune --yes',
    'import people.jsonl --adopt-by-name --dry-run',
    'import people.jsonl --as-of 2026-01-31T08:00Z',
  ],
  'changes allow': ['changes allow 480 --reason "ticket 4711"'],
  'check-config': ['check-config', 'check-config config/production.yaml'],
  reload: ['reload --dry-run', 'reload'],
  'keys list': ['keys'],
  'keys generate': ['keys generate --kind token --out new-token-key'],
  doctor: ['doctor'],
  migrate: ['migrate --dry-run', 'migrate'],
};

/** Adds examples to the help of each command; the help of a noun gets one for each verb. */
export function addExamples(command: Command, path: readonly string[] = []): void {
  const verbs = command.commands;
  for (const verb of verbs) addExamples(verb, [...path, verb.name()]);
  const name = path.join(' ');
  const shown = verbs.length === 0 ? [name] : verbs.map((verb) => `${name} ${verb.name()}`);
  const examples = shown.flatMap((one) => EXAMPLES[one]?.slice(0, verbs.length === 0 ? 9 : 1) ?? []);
  if (path.length === 0 || examples.length === 0) return;
  const lines = examples.map((example) => `  gatehouse ${example}`);
  command.addHelpText('after', `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}`);
}
