package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/state/files"
)

// Key reads the key for signatures of sessions and forms from the state directory, and creates it if it is
// missing. Deleting the file ends all sessions.
func Key(stateDir string) ([]byte, error) { return files.OpenKey(keyOf(stateDir)) }

func keyOf(stateDir string) (file, what, lost string) {
	return filepath.Join(stateDir, "session.key"), "session key", "everybody logs in again"
}

// seals signs values. Each signature has a purpose, so that it is not valid for another one.
type seals struct {
	key []byte
	now func() time.Time
}

func (s seals) mac(purpose string, data []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	_, _ = h.Write([]byte(purpose + "\x00")) // writing to a hash cannot fail
	_, _ = h.Write(data)
	return h.Sum(nil)
}

// seal encodes a value as signed text. open accepts it until it expires.
func (s seals) seal(purpose string, v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic("access: a value cannot be sealed: " + err.Error()) // values contain only strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(body) + "." + base64.RawURLEncoding.EncodeToString(s.mac(purpose, body))
}

// maxSealed is the maximum size of a text for open.
const maxSealed = 4 << 10

// open decodes a value that seal created for the same purpose.
func (s seals) open(purpose, text string, v any) bool {
	if len(text) > maxSealed {
		return false
	}
	body, mac, ok := strings.Cut(text, ".")
	if !ok {
		return false
	}
	data, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return false
	}
	sum, err := base64.RawURLEncoding.DecodeString(mac)
	return err == nil && hmac.Equal(sum, s.mac(purpose, data)) && json.Unmarshal(data, v) == nil
}

// session is a user who logged in with a token.
type session struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Expires int64  `json:"expires"` // Unix seconds
	// Mark identifies the token. When the token is replaced, the session ends.
	Mark []byte `json:"mark"`
}

// mark returns an identifier of a token that reveals nothing about it without the key.
func (s seals) mark(token []byte) []byte { return s.mac("token", token) }

// formFor is the time for which a form stays valid.
const formFor = sessionFor

// form returns the token of a form. It is valid for one owner, until the end of the next 12-hour period. It
// stays the same for hours, so a page that contains it must not be compressed.
func (s seals) form(bound string, back int64) string {
	slot := s.now().Unix()/int64(formFor/time.Second) - back
	return base64.RawURLEncoding.EncodeToString(s.mac("form", fmt.Appendf(nil, "%d\x00%s", slot, bound)))
}

func (s seals) checkForm(bound, token string) bool {
	if bound == "" || token == "" {
		return false
	}
	now, before := same([]byte(token), []byte(s.form(bound, 0))), same([]byte(token), []byte(s.form(bound, 1)))
	return now || before
}

// random returns a text that cannot be guessed.
func random() string { return rand.Text() }
