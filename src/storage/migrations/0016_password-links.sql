-- One-time links with which a person sets their password: for a new account, or a forgotten one.
-- Up Migration

create table password_links (
  token_hash text primary key,
  account_id text not null
    constraint password_links_account_id_fkey references accounts on delete cascade,
  purpose text not null check (purpose in ('invitation', 'forgotten')),
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index password_links_account_id on password_links (account_id);
create index password_links_expires_at on password_links (expires_at);

-- Down Migration

drop table password_links;
