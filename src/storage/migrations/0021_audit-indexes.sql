-- For the questions of `operator audit` and `operator explain`, which a year of activity must not make
-- slow. What people do all the time is left out: of that the newest is found without an index.
-- Up Migration

create index activity_rare_action on activity (action, id desc)
  where action <> 'signed_in' and action <> 'connected' and action <> 'disconnected'
    and action <> 'tokens_revoked';
create index activity_other_actor on activity (actor, id desc) where actor <> 'person';
create index activity_client_id on activity ((details ->> 'client_id'), id desc)
  where (details ->> 'client_id') is not null;

-- Down Migration

drop index activity_client_id, activity_other_actor, activity_rare_action;
