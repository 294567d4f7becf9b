package access

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// proven is a site whose key is in a state directory.
func proven(t *testing.T) (s *site, dir string) {
	t.Helper()
	s, dir = newSite(t, nil), t.TempDir()
	if _, ok := LocalProof(dir, "ann"); ok {
		t.Error("there is a proof without a key")
	}
	key, err := Key(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Key(dir); err != nil || string(again) != string(key) {
		t.Errorf("the key changes: %v", err)
	}
	s.guard.seals.key = key
	return s, dir
}

const proofBody = `{"reason":"r"}`

// sign says hello and returns what a request to suspend is signed with.
func (s *site) sign(p Proof, from string) (header string, err error) {
	s.t.Helper()
	nonce, hello := p.Hello()
	rec := s.ask("GET", ProofPath, from, "", "Authorization: "+hello)
	if rec.Code != 200 {
		return "", errors.New(rec.Body.String())
	}
	return p.Sign(nonce, rec.Body.Bytes(), "POST", "/api/v1/suspend?x=1", []byte(proofBody))
}

func (s *site) signed(header string) *httptest.ResponseRecorder {
	return s.ask("POST", "/api/v1/suspend?x=1", "192.0.2.7", proofBody, "Authorization: "+header, "X-Weir-Command: 1")
}

// mustSign is sign where it works.
func (s *site) mustSign(p Proof) string {
	s.t.Helper()
	header, err := s.sign(p, "192.0.2.7")
	if err != nil {
		s.t.Fatal(err)
	}
	return header
}

func TestProofOfBothSides(t *testing.T) {
	s, dir := proven(t)
	local, ok := LocalProof(dir, "ann")
	if !ok {
		t.Fatal("there is no proof")
	}
	for _, tc := range []struct {
		proof Proof
		want  string
		code  int
	}{
		{local, "ann/state directory/operate", 200},
		{TokenProof(opsToken), "ops/token/operate", 200},
		{TokenProof(readerToken), "the role of reader is read", 403},
	} {
		header := s.mustSign(tc.proof)
		for _, secret := range []string{opsToken, readerToken, string(s.guard.seals.key), text(s.guard.seals.key)} {
			if strings.Contains(header, secret) {
				t.Fatalf("the key is sent: %s", header)
			}
		}
		if rec := s.signed(header); rec.Code != tc.code || !strings.Contains(rec.Body.String(), tc.want) {
			t.Errorf("%s: %d %s", tc.want, rec.Code, rec.Body)
		}
		if rec := s.signed(header); rec.Code != 401 {
			t.Errorf("%s: a second time: %d %s", tc.want, rec.Code, rec.Body)
		}
	}

	// A request is for what was asked, in its time, by who has the key still.
	for name, change := range map[string]func() *httptest.ResponseRecorder{
		"another address": func() *httptest.ResponseRecorder {
			return s.ask("POST", "/api/v1/resume?x=1", "192.0.2.7", proofBody, "Authorization: "+s.mustSign(local), "X-Weir-Command: 1")
		},
		"another question": func() *httptest.ResponseRecorder {
			return s.ask("POST", "/api/v1/suspend?x=2", "192.0.2.7", proofBody, "Authorization: "+s.mustSign(local), "X-Weir-Command: 1")
		},
		"another method": func() *httptest.ResponseRecorder {
			return s.ask("PUT", "/api/v1/suspend?x=1", "192.0.2.7", proofBody, "Authorization: "+s.mustSign(local), "X-Weir-Command: 1")
		},
		"another body": func() *httptest.ResponseRecorder {
			return s.ask("POST", "/api/v1/suspend?x=1", "192.0.2.7", proofBody+" ", "Authorization: "+s.mustSign(local), "X-Weir-Command: 1")
		},
		"another user": func() *httptest.ResponseRecorder {
			parts := strings.Split(s.mustSign(local), ".")
			return s.signed(strings.Join([]string{parts[0], text([]byte("root")), parts[2]}, "."))
		},
		"too late": func() *httptest.ResponseRecorder {
			header := s.mustSign(local)
			s.clock.move(proofFor)
			return s.signed(header)
		},
		"a token that was taken back": func() *httptest.ResponseRecorder {
			header := s.mustSign(TokenProof(readerToken))
			s.file("reader", strings.Repeat("n", leastToken))
			return s.signed(header)
		},
		"a user that is not a name": func() *httptest.ResponseRecorder {
			odd := local
			odd.user = "a\nb"
			return s.signed(s.mustSign(odd))
		},
		"no session": func() *httptest.ResponseRecorder { return s.signed("Weir x.y.z") },
		"nothing":    func() *httptest.ResponseRecorder { return s.signed("Weir ") },
	} {
		if rec := change(); rec.Code != 401 {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
}

// TestHelloGuessesNothing: a wrong hello counts as a wrong token, tells nothing, and
// does not keep out who can read the state directory.
func TestHelloGuessesNothing(t *testing.T) {
	s, dir := proven(t)
	for range failedLimit.burst {
		if _, err := s.sign(TokenProof(strings.Repeat("x", leastToken)), "192.0.2.7"); err == nil || !strings.Contains(err.Error(), "the token is unknown") {
			t.Fatalf("a wrong token: %v", err)
		}
	}
	if _, err := s.sign(TokenProof(strings.Repeat("x", leastToken)), "192.0.2.7"); err == nil || !strings.Contains(err.Error(), "too many requests") {
		t.Errorf("too many wrong hellos: %v", err)
	}
	if _, err := s.sign(TokenProof(opsToken), "192.0.2.7"); err != nil {
		t.Errorf("wrong hellos lock out a right one from the same address: %v", err)
	}
	if _, err := s.sign(TokenProof(opsToken), "192.0.2.8"); err != nil {
		t.Errorf("another address: %v", err)
	}
	local, _ := LocalProof(dir, "ann")
	if rec := s.signed(s.mustSign(local)); rec.Code != 200 {
		t.Errorf("somebody else at the address keeps the owner of the state out: %d %s", rec.Code, rec.Body)
	}
	for range mostProofs {
		s.mustSign(local)
	}
	if _, err := s.sign(local, "192.0.2.7"); err == nil {
		t.Error("sessions without end")
	}
	if _, err := s.sign(TokenProof(readerToken), "192.0.2.8"); err != nil {
		t.Errorf("another key: %v", err)
	}
	s.clock.move(proofFor)
	_, hello := local.Hello()
	for range 3 * mostProofs { // heard by somebody, who says it again and again
		if rec := s.ask("GET", ProofPath, "192.0.2.9", "", "Authorization: "+hello); rec.Code != 200 {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
	}
	if rec := s.signed(s.mustSign(local)); rec.Code != 200 {
		t.Errorf("who repeats a hello keeps others out: %d %s", rec.Code, rec.Body)
	}
	if n := len(s.guard.proofs.all); n != 1 {
		t.Errorf("%d sessions are kept", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "session.key"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Key(dir); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("%v", err)
	}
}
