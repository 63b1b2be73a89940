-- When somebody was first asked to sign in with more than a password (sign_in.require): their grace begins.
-- Up Migration

create table sign_in_grace (
  account_id text constraint sign_in_grace_pkey primary key
    constraint sign_in_grace_account_id_fkey references accounts on delete cascade,
  began_at timestamptz not null
);

-- Down Migration

drop table sign_in_grace;
