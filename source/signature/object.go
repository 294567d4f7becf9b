package signature

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	beginPGP        = "-----BEGIN PGP SIGNATURE-----"
	beginPGPMessage = "-----BEGIN PGP MESSAGE-----"
	beginSSH        = "-----BEGIN SSH SIGNATURE-----"
	beginX509       = "-----BEGIN SIGNED MESSAGE-----"
)

// Object has the parts of a commit or tag.
type Object struct {
	// Payload is the signed content.
	Payload []byte
	// Signature is the armored signature, or empty.
	Signature []byte
	// Who is the name and address of the committer or tagger.
	Who string
	// When is the time of the committer or tagger. It is zero if it cannot be parsed.
	When time.Time
	// Name is the name in a tag. It is empty for a commit.
	Name string
}

// ParseCommit splits a commit into its parts. The signature is in the header gpgsig, and the commit without
// this header is the signed content. The header gpgsig-sha256, which signs the commit's SHA-256 form, is
// removed as well.
func ParseCommit(raw []byte) (Object, error) {
	head, body, ok := bytes.Cut(raw, []byte("\n\n"))
	if !ok {
		head, body = bytes.TrimSuffix(raw, []byte("\n")), nil
	}
	var o Object
	var payload, signature []byte
	found := 0
	// into receives continuation lines.
	into := &payload
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		key, value, _ := bytes.Cut(line, []byte(" "))
		switch {
		case len(line) > 0 && line[0] == ' ' && into != &payload:
			if into != nil {
				*into = append(append(*into, line[1:]...), '\n')
			}
			continue
		case string(key) == "gpgsig":
			found++
			signature = append(append(signature, value...), '\n')
			into = &signature
			continue
		case string(key) == "gpgsig-sha256":
			into = nil
			continue
		case bytes.HasPrefix(line, []byte("gpgsig")):
			return Object{}, errors.New("it has a header like that of a signature, which Git would leave out of the signed contents")
		case string(key) == "committer" && o.Who == "":
			o.Who, o.When = parseIdentity(string(value)) // the first one counts, as in Git
		}
		into = &payload
		payload = append(append(payload, line...), '\n')
	}
	if found > 1 {
		return Object{}, errors.New("it has several signatures")
	}
	if ok {
		payload = append(append(payload, '\n'), body...)
	}
	o.Payload, o.Signature = payload, signature
	return o, nil
}

// ParseTag splits a tag into its parts. The signature is at the end of its message, and everything before it
// is the signed content.
func ParseTag(raw []byte) (Object, error) {
	var o Object
	head, _, _ := bytes.Cut(raw, []byte("\n\n"))
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		switch key, value, _ := strings.Cut(string(line), " "); key {
		case "tag":
			if o.Name != "" {
				return Object{}, errors.New("it has several names")
			}
			o.Name = value
		case "tagger":
			if o.Who != "" {
				break
			}
			o.Who, o.When = parseIdentity(value)
		}
	}
	// As in Git, the last line that starts a signature counts.
	at := len(raw)
	for start := 0; start < len(raw); {
		for _, begin := range []string{beginPGP, beginPGPMessage, beginSSH, beginX509} {
			if bytes.HasPrefix(raw[start:], []byte(begin)) {
				at = start
			}
		}
		next := bytes.IndexByte(raw[start:], '\n')
		if next < 0 {
			break
		}
		start += next + 1
	}
	o.Payload, o.Signature = raw[:at], raw[at:]
	return o, nil
}

// parseIdentity parses "Name <address> seconds zone". when is zero if the seconds are 0 or not a number,
// because Git treats neither as a date.
func parseIdentity(text string) (who string, when time.Time) {
	end := strings.LastIndexByte(text, '>')
	if end < 0 {
		return text, time.Time{}
	}
	seconds, _, _ := strings.Cut(strings.TrimSpace(text[end+1:]), " ")
	if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && n > 0 {
		when = time.Unix(n, 0).UTC()
	}
	return text[:end+1], when
}
