package signature

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// allowedSigner is a line of an allowed signers file; see ALLOWED SIGNERS in ssh-keygen(1).
type allowedSigner struct {
	principals    string
	namespaces    []string // empty means all
	after, before time.Time
	key           ssh.PublicKey
}

// parseAllowedSigners parses a complete file. zone is the time zone of times that have none.
func parseAllowedSigners(file string, data []byte, zone *time.Location) ([]allowedSigner, error) {
	var out []allowedSigner
	n, authorities := 0, 0
	for line := range bytes.Lines(data) {
		n++
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		s, authority, err := parseAllowedSigner(text, zone)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		case authority:
			authorities++
		default:
			out = append(out, s)
		}
	}
	if len(out) == 0 && authorities > 0 {
		return nil, fmt.Errorf("%s: it lists only certificate authorities, which weir does not support; list the signers' keys", file)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: it lists nobody; write lines such as: alice@example.com namespaces=\"git\" ssh-ed25519 AAAA…", file)
	}
	return out, nil
}

// parseAllowedSigner parses "principals [options] type key [comment]". authority is true if the line is about
// a certificate authority; such lines are ignored.
func parseAllowedSigner(text string, zone *time.Location) (s allowedSigner, authority bool, err error) {
	principals, rest, ok := cutQuoted(text, " \t")
	if s.principals = strings.Trim(principals, `"`); !ok || s.principals == "" {
		return s, false, errors.New("no key behind the principals")
	}
	rest = strings.TrimSpace(rest)
	// The remainder has the form of a line in authorized_keys.
	key, _, options, more, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil || len(more) > 0 {
		return s, false, errors.New("no public key that can be read; the form is: principals [options] type key [comment]")
	}
	s.key = key
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "cert-authority":
			authority = true
		case "namespaces":
			s.namespaces = strings.Split(value, ",")
		case "valid-after":
			s.after, err = parseTime(value, zone)
		case "valid-before":
			s.before, err = parseTime(value, zone)
		default:
			return s, false, fmt.Errorf("unknown option %q; known are namespaces, valid-after, valid-before and cert-authority", name)
		}
		if err != nil {
			return s, false, err
		}
	}
	return s, authority, nil
}

// cutQuoted cuts at the first of seps that is not in quotes.
func cutQuoted(text, seps string) (before, after string, ok bool) {
	quoted := false
	for i, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune(seps, r):
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// parseTime parses YYYYMMDD[HHMM[SS]], with a Z suffix for UTC.
func parseTime(text string, zone *time.Location) (time.Time, error) {
	digits, utc := strings.CutSuffix(text, "Z")
	if utc {
		zone = time.UTC
	}
	for _, form := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(form) == len(digits) {
			if t, err := time.ParseInLocation(form, digits, zone); err == nil {
				return t, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with Z behind it for UTC", text)
}

// findPrincipals finds the line that allows a key at the time of the committer or tagger, or at the current
// time if that is zero. It returns the line's principals. The error text continues a sentence.
func findPrincipals(signers []allowedSigner, key ssh.PublicKey, when, now time.Time) (string, error) {
	if when.IsZero() {
		when = now
	}
	why := errors.New("which verify.ssh does not list")
	for _, s := range signers {
		switch {
		case !bytes.Equal(s.key.Marshal(), key.Marshal()):
		case !s.permits(gitNamespace):
			why = fmt.Errorf("which verify.ssh lists for %s only, not for git", strings.Join(s.namespaces, ", "))
		case !s.after.IsZero() && when.Before(s.after):
			why = fmt.Errorf("which verify.ssh lists from %s on, after the time of this signature (%s)", s.after.UTC().Format(time.RFC3339), when.UTC().Format(time.RFC3339))
		case !s.before.IsZero() && !when.Before(s.before):
			why = fmt.Errorf("which verify.ssh lists until %s, before the time of this signature (%s)", s.before.UTC().Format(time.RFC3339), when.UTC().Format(time.RFC3339))
		default:
			return s.principals, nil
		}
	}
	return "", why
}

// literal escapes the special characters of path.Match that patterns of ssh do not have.
var literal = strings.NewReplacer(`\`, `\\`, `[`, `\[`)

// permits reports whether a namespace matches one of the line's patterns, and no pattern that starts with an
// exclamation mark; see PATTERNS in ssh_config(5).
func (s allowedSigner) permits(namespace string) bool {
	covered := len(s.namespaces) == 0
	for _, pattern := range s.namespaces {
		pattern, excludes := strings.CutPrefix(pattern, "!")
		if ok, err := path.Match(literal.Replace(pattern), namespace); err != nil || !ok {
			continue
		}
		if excludes {
			return false
		}
		covered = true
	}
	return covered
}
