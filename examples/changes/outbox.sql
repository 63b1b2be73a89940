CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, line jsonb NOT NULL);

CREATE FUNCTION staff_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changed staff := CASE WHEN tg_op = 'DELETE' THEN old ELSE new END;
BEGIN
  INSERT INTO outbox (line) VALUES (jsonb_build_object('type', 'membership',
    'account', changed.person, 'organization', changed.organization, 'role', changed.role,
    'removed', tg_op = 'DELETE', 'as_of', clock_timestamp()));
  RETURN NULL;
END
$$;
CREATE TRIGGER staff_changed AFTER INSERT OR UPDATE OR DELETE ON staff
  FOR EACH ROW EXECUTE FUNCTION staff_changed();
