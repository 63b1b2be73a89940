/** What owners and admins of an organization decide about all clients and personal API keys. */
import type { ClientDecisions } from './client-blocks.ts';

export interface OrganizationPolicy {
  /** True if only clients that an owner, admin or operator approved reach the organization. */
  readonly asksFirst: boolean;
  /** True if personal API keys reach the organization. */
  readonly allowsApiKeys: boolean;
}

export const OPEN_POLICY: OrganizationPolicy = Object.freeze({
  asksFirst: false,
  allowsApiKeys: true,
});

export const isOpen = ({ asksFirst, allowsApiKeys }: OrganizationPolicy): boolean => !asksFirst && allowsApiKeys;

/** Policies by the id of the organization. Organizations with `OPEN_POLICY` are absent. */
export type OrganizationPolicies = ReadonlyMap<string, OrganizationPolicy>;

/**
 * Returns those of the user's organizations that admit the client or the API key.
 *
 * @param decisions the decisions about the client; undefined for an API key
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
