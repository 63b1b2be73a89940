/** What owners and admins of an organization decide about all clients and personal API keys. */

export interface OrganizationPolicy {
  /** True if only clients that an owner, admin or operator has approved may access the organization. */
  readonly asksFirst: boolean;
  readonly allowsApiKeys: boolean;
}

export const OPEN_POLICY: OrganizationPolicy = Object.freeze({
  asksFirst: false,
  allowsApiKeys: true,
});

export const isOpen = ({ asksFirst, allowsApiKeys }: OrganizationPolicy): boolean => !asksFirst && allowsApiKeys;

/** Keyed by the id of the organization. Organizations with `OPEN_POLICY` are absent. */
export type OrganizationPolicies = ReadonlyMap<string, OrganizationPolicy>;
