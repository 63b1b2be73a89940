/** The order in which people see organizations and warehouses: the same on every node and database. */

const collator = new Intl.Collator('en', { numeric: true });

export function byName(
  a: { readonly id: string; readonly name: string },
  b: { readonly id: string; readonly name: string },
): number {
  return collator.compare(a.name, b.name) || (a.id < b.id ? -1 : 1);
}
