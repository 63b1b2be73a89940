/** What a caller may do in which warehouse. */
import type { Caller, Right, Warehouse } from './caller.ts';
import { CallerRefused, missingRight } from './refusal.ts';

/** Every warehouse in which the caller has `right`, of all organizations. */
export const warehousesOf = (caller: Caller, right: Right = 'read'): Warehouse[] =>
  caller.organizations
    .flatMap(({ warehouses }) => warehouses)
    .filter(({ rights }) => rights.includes(right));

/** Unknown warehouses and those of other organizations are out of reach alike. */
export const mayReach = (caller: Caller, warehouseId: string, right: Right): boolean =>
  warehousesOf(caller, right).some(({ id }) => id === warehouseId);

/**
 * Ends a resolver or a route unless the caller may.
 *
 * @throws CallerRefused with status 403; in a GraphQL answer an error with the code `FORBIDDEN`.
 */
export function requireRight(caller: Caller, warehouseId: string, right: Right): void {
  if (!mayReach(caller, warehouseId, right)) throw new CallerRefused(missingRight(right));
}
