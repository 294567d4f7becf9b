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

// Key reads the key that sessions and forms are signed with from the state
// directory, and makes it once. Without the file all sessions end.
func Key(stateDir string) ([]byte, error) { return files.OpenKey(keyOf(stateDir)) }

func keyOf(stateDir string) (file, what, lost string) {
	return filepath.Join(stateDir, "session.key"), "session key", "everybody logs in again"
}

// seals signs values for one purpose each, so that none passes for another.
type seals struct {
	key []byte
	now func() time.Time
}

func (s seals) mac(purpose string, data []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	_, _ = h.Write([]byte(purpose + "\x00")) // a hash takes everything
	_, _ = h.Write(data)
	return h.Sum(nil)
}

// seal is a value as a text that open takes until it has expired.
func (s seals) seal(purpose string, v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic("access: a value cannot be sealed: " + err.Error()) // they hold texts and numbers
	}
	return base64.RawURLEncoding.EncodeToString(body) + "." + base64.RawURLEncoding.EncodeToString(s.mac(purpose, body))
}

// maxSealed bounds a text that is opened.
const maxSealed = 4 << 10

// open reads a value that seal made for the same purpose.
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
	// Mark stands for the token: where it is replaced, the session ends.
	Mark []byte `json:"mark"`
}

// mark stands for a token, and reveals nothing of it without the key.
func (s seals) mark(token []byte) []byte { return s.mac("token", token) }

// formFor is the time for which a form stays valid.
const formFor = sessionFor

// form is the token of a form: bound to whose page it is on, and good until the
// end of the next half day. It is the same in each answer for hours, so a page that
// holds one is not compressed.
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

// random is a text that cannot be guessed.
func random() string { return rand.Text() }
