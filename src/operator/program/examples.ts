/** Examples for the help of every command, exactly as they would be typed. */
import type { Command } from 'commander';

/** Each line omits `gatehouse`. */
const EXAMPLES = `
accounts add --email ada@example.com --name "Ada Lovelace" --invite
accounts add --email ada@example.com --name "Ada Lovelace" --password-file ada.txt
accounts invite ada@example.com
accounts list --state suspended
accounts update ada@example.com --name "Ada King"
accounts update ada@example.com --new-email ada.king@example.com
accounts delete ada@example.com --reason "ticket 4711"
accounts suspend ada@example.com
accounts resume ada@example.com
links list ada@example.com
links remove ada@example.com --provider platform
passkeys list ada@example.com
passkeys remove ada@example.com --passkey pk_VcX0bq7mWcXk2f1S
organizations add --name "Northern Logistics"
organizations list --match north
organizations show org_VcX0bq7mWcXk2f1S
organizations update org_VcX0bq7mWcXk2f1S --name "Northern Lights"
organizations delete org_VcX0bq7mWcXk2f1S
organizations policy org_VcX0bq7mWcXk2f1S
organizations policy org_VcX0bq7mWcXk2f1S ask --approve-connected
organizations requests org_VcX0bq7mWcXk2f1S
organizations approve org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
organizations block org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
organizations block org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --warehouse wh_c1kXq0V7bWmX2fSc
organizations unblock org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
warehouses add --organization org_VcX0bq7mWcXk2f1S --name Rotterdam
warehouses list --organization org_VcX0bq7mWcXk2f1S
warehouses show wh_c1kXq0V7bWmX2fSc
warehouses update wh_c1kXq0V7bWmX2fSc --name "Rotterdam, Europoort"
warehouses delete wh_c1kXq0V7bWmX2fSc --yes
memberships set --account ada@example.com --organization org_VcX0bq7mWcXk2f1S --role member
memberships set --account ada@example.com --warehouse wh_c1kXq0V7bWmX2fSc --rights read,write
memberships remove --account ada@example.com --organization org_VcX0bq7mWcXk2f1S
memberships list --account ada@example.com
memberships list --organization org_VcX0bq7mWcXk2f1S --role owner
nodes
nodes --wait 2 --within 5m
connections list --account ada@example.com
connections end --account ada@example.com --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
connections end acc_VcX0bq7mWcXk2f1S/gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes
sessions list --account ada@example.com
sessions end ses_VcX0bq7mWcXk2f1S
sessions end --all --yes
api-keys list --account ada@example.com
api-keys revoke key_VcX0bq7mWcXk2f1S
blocks list --organization org_VcX0bq7mWcXk2f1S
problems list
problems list --account ada@example.com --json
clients add --kind confidential --name "Acme Sync" --redirect-uri https://acme.example/callback
clients add --kind public --native --name "Acme Mobile" --redirect-uri com.acme.mobile:/callback
clients add --kind machine --name "Nightly export"
clients list --kind machine
clients show gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
clients update gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --name "Acme Sync 2"
clients suspend gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
clients resume gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
clients transfer gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --owner ada@example.com
clients rotate-secret gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
clients remove-secret gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --secret=x7Qa
clients renew gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes
clients delete gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes
revoke --account ada@example.com
revoke --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes
revoke --token - < leaked-token.txt
leaked - < found.txt
leaked report.json --reason "ticket 4711"
show
show - < found.txt
show ada@example.com
audit --since 7d --actor operator
audit --account ada@example.com --action sign_in_failed --limit 20
audit --import imp_VcX0bq7mWcXk2f1S
audit --request req_0123456789abcdef
import people.jsonl --dry-run
import people.jsonl --prune --yes
import people.jsonl --adopt-by-name --dry-run
import people.jsonl --as-of 2026-01-31T08:00Z
changes allow 480 --reason "ticket 4711"
check-config
check-config config/production.yaml
reload --dry-run
reload
keys list
keys generate --kind token --out new-token-key
doctor
migrate
`.split('\n');

/** Adds examples to the help of each command; the help of a noun gets one for each verb. */
export function addExamples(command: Command, path: readonly string[] = []): void {
  const verbs = command.commands;
  for (const verb of verbs) addExamples(verb, [...path, verb.name()]);
  if (path.length === 0) return;
  const name = path.join(' ');
  const of = (words: string) => EXAMPLES.filter((line) => line === words || line.startsWith(`${words} `));
  const shown = verbs.length === 0 ? of(name) : verbs.flatMap((verb) => of(`${name} ${verb.name()}`).slice(0, 1));
  const lines = shown.map((example) => `  gatehouse ${example}`);
  command.addHelpText('after', `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}`);
}
