-- Whoever has no rules of their own gets those of the server's settings. Until now there were none, and a row without
-- rules was also written for a member ID in Slack or an address alone: such a row is no choice of rules.
UPDATE notifications SET body = '{' || substr(body, 13) WHERE substr(body, 1, 12) = '{"rules":[],';
