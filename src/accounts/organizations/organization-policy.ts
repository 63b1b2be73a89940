/** What the owners and admins of an organization decide about clients and personal API keys. */
import type { ClientDecisions } from './client-blocks.ts';

export interface OrganizationPolicy {
  /** True if a client reaches the organization only after it was approved for it. */
  readonly asksFirst: boolean;
  /** True if personal API keys reach the organization. */
  readonly allowsApiKeys: boolean;
}

export const OPEN_POLICY: OrganizationPolicy = Object.freeze({
  asksFirst: false,
  allowsApiKeys: true,
});

export const isOpen = ({ asksFirst, allowsApiKeys }: OrganizationPolicy): boolean =>
  !asksFirst && allowsApiKeys;

/** By organization; those with `OPEN_POLICY` are absent. */
export type OrganizationPolicies = ReadonlyMap<string, OrganizationPolicy>;

/**
 * Returns the organizations that a credential may reach.
 *
 * @param decisions about the client; undefined for an API key, which has no client
 */
export function admittedBy<Organization extends { readonly id: string }>(
  organizations: readonly Organization[],
  policies: OrganizationPolicies,
  decisions: ClientDecisions | undefined,
): readonly Organization[] {
  if (policies.size === 0 && !decisions?.blocked.size) return organizations;
  return organizations.filter(({ id }) => {
    const { asksFirst, allowsApiKeys } = policies.get(id) ?? OPEN_POLICY;
    if (decisions === undefined) return allowsApiKeys;
    return !decisions.blocked.has(id) && (!asksFirst || decisions.approved.has(id));
  });
}
