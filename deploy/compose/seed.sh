#!/usr/bin/env bash
# Makes on a Gitea what the trial needs: a person "you" with the repository "fleet", a
# user "weir" who administers it, tokens of his for less, and a webhook.
# What is there stays, so that it can run again.
#
#   GITEA_URL  where Gitea is
#   WEIR_URL   where weir is, as Gitea reaches it
#   ADMIN      how `gitea admin` is called; not needed for users who are there
#   FLEET      directory with what the repository begins with
#   OUT        directory for git-token, forge-token and webhook-secret
set -euo pipefail
: "${GITEA_URL:?}" "${WEIR_URL:?}" "${FLEET:?}" "${OUT:?}"

# Passwords of a trial that listens on this machine alone.
you=${YOU:-you} your_password=${YOUR_PASSWORD:-weir-trial}
bot=${BOT:-weir} bot_password=${BOT_PASSWORD:-weir-trial-bot}

# call USER:PASSWORD METHOD PATH [JSON] prints the answer; it fails unless Gitea did as asked.
call() {
  curl -fsS --retry 5 --retry-connrefused -u "$1" -X "$2" -H 'Content-Type: application/json' \
    "$GITEA_URL/api/v1$3" ${4:+--data "$4"}
}
there() { curl -fsS -o /dev/null -u "$1" "$GITEA_URL/api/v1$2" 2>/dev/null; }

# user NAME PASSWORD [FLAG…]
user() {
  local name=$1 password=$2
  shift 2
  if there "$name:$password" /user; then
    return
  fi
  # shellcheck disable=SC2086 # ADMIN is a command with its arguments
  ${ADMIN:?} user create --username "$name" --password "$password" --email "$name@example.invalid" --must-change-password=false "$@"
}

# token SCOPES NAME writes a token of the bot's to OUT/NAME, unless one is there that works.
token() {
  local file=$OUT/$2 answer
  if [ -s "$file" ] && curl -fsS -o /dev/null -H "Authorization: token $(cat "$file")" "$GITEA_URL/api/v1/repos/$you/fleet" 2>/dev/null; then
    return
  fi
  call "$bot:$bot_password" DELETE "/users/$bot/tokens/$2" >/dev/null 2>&1 || true
  answer=$(call "$bot:$bot_password" POST "/users/$bot/tokens" "{\"name\":\"$2\",\"scopes\":[$1]}")
  put "$2" "$(sed -n 's/.*"sha1":"\([^"]*\)".*/\1/p' <<<"$answer")"
}

# put NAME VALUE writes a file that weir, who is somebody else, can read: the volume is
# there for weir alone.
put() {
  [ -n "$2" ] || { echo "seed: no value for $1" >&2; exit 1; }
  printf '%s\n' "$2" >"$OUT/.$1"
  chmod 0444 "$OUT/.$1"
  mv -f "$OUT/.$1" "$OUT/$1"
}

user "$you" "$your_password" --admin
user "$bot" "$bot_password"

if ! there "$you:$your_password" "/repos/$you/fleet"; then
  call "$you:$your_password" POST /user/repos '{"name":"fleet","private":true,"default_branch":"main","description":"Pools of machines, kept by weir"}' >/dev/null
fi
call "$you:$your_password" PUT "/repos/$you/fleet/collaborators/$bot" '{"permission":"admin"}' # only administrators are told who may write, which commands in comments need

token '"read:repository"' git-token
token '"write:repository","write:issue","read:user"' forge-token
if [ ! -s "$OUT/webhook-secret" ]; then
  put webhook-secret "$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')"
fi

if ! call "$you:$your_password" GET "/repos/$you/fleet/hooks" | grep -qF "\"$WEIR_URL/hooks/fleet\""; then
  call "$you:$your_password" POST "/repos/$you/fleet/hooks" "{\"type\":\"gitea\",\"active\":true,\"events\":[\"push\",\"create\",\"delete\",\"pull_request\",\"issue_comment\"],
    \"config\":{\"url\":\"$WEIR_URL/hooks/fleet\",\"content_type\":\"json\",\"secret\":\"$(cat "$OUT/webhook-secret")\"}}" >/dev/null
fi

if ! there "$you:$your_password" "/repos/$you/fleet/branches/main"; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # What the copy takes along of its own (a program that embeds it) is not part of a fleet.
  cp -R "$FLEET/." "$work"
  rm -f "$work"/*.go
  export HOME=$work/.home GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
  mkdir -p "$HOME"
  printf '.home\n' >"$work/.gitignore"
  git -C "$work" init -q -b main
  git -C "$work" add -A
  git -C "$work" -c user.name="$you" -c user.email="$you@example.invalid" commit -q -m 'A fleet to start from'
  # The password goes over the environment: arguments are there for everybody to see.
  GIT_USER=$you GIT_PASSWORD=$your_password git -C "$work" \
    -c credential.helper= -c 'credential.helper=!f() { echo "username=$GIT_USER"; echo "password=$GIT_PASSWORD"; }; f' \
    push -q "$GITEA_URL/$you/fleet.git" main
fi
echo "seeded: sign in at $GITEA_URL as $you with the password $your_password"
