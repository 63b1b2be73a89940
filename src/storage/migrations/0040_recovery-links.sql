-- A one-time link is also made for who has just confirmed elsewhere that it is them.
-- Up Migration

alter table password_links
  drop constraint password_links_purpose_check,
  add constraint password_links_purpose_check
    check (purpose in ('invitation', 'forgotten', 'confirmed'));

-- Down Migration

delete from password_links where purpose = 'confirmed';
alter table password_links
  drop constraint password_links_purpose_check,
  add constraint password_links_purpose_check check (purpose in ('invitation', 'forgotten'));
