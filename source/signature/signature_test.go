package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

// key is a key that is the same on every run.
func key(t *testing.T, seed byte) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(append(make([]byte, 31), seed)))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func line(k ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.PublicKey())))
}

// sign makes an SSH signature; change spoils it.
func sign(t *testing.T, k ssh.Signer, payload []byte, change func(*sshsig)) []byte {
	t.Helper()
	sum := sha512.Sum512(payload)
	s := sshsig{Version: 1, PublicKey: k.PublicKey().Marshal(), Namespace: "git", HashAlg: "sha512"}
	if change != nil {
		change(&s)
	}
	sig, err := k.Sign(nil, append([]byte(sshsigMagic), ssh.Marshal(sshsigSigned{s.Namespace, s.Reserved, s.HashAlg, sum[:]})...))
	if err != nil {
		t.Fatal(err)
	}
	if s.Signature == nil {
		s.Signature = ssh.Marshal(sig)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: append([]byte(sshsigMagic), ssh.Marshal(s)...)})
}

func TestSSHSignatures(t *testing.T) {
	t.Parallel()
	alice, bob := key(t, 1), key(t, 2)
	when := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		signers string
		by      ssh.Signer
		change  func(*sshsig)
		// want is in the name of the signer, or, with a "!", in the error.
		want string
	}{
		"listed":              {"alice@example.com " + line(alice), alice, nil, "(alice@example.com)"},
		"several principals":  {"alice@example.com,ops@example.com " + line(alice), alice, nil, "(alice@example.com,ops@example.com)"},
		"quoted principals":   {`"Alice A,*@example.com" namespaces="file,git" ` + line(alice), alice, nil, "(Alice A,*@example.com)"},
		"a comment behind":    {"a " + line(alice) + " laptop of alice", alice, nil, "(a)"},
		"not listed":          {"a " + line(alice), bob, nil, "!which verify.ssh does not list"},
		"another namespace":   {`a namespaces="file" ` + line(alice), alice, nil, "!for file only"},
		"namespace pattern":   {`a namespaces="g*" ` + line(alice), alice, nil, "(a)"},
		"namespace excluded":  {`a namespaces="!git,*" ` + line(alice), alice, nil, "!for !git, * only"},
		"another excluded":    {`a namespaces="!file,*" ` + line(alice), alice, nil, "(a)"},
		"in its time":         {`a valid-after="20260301",valid-before="20260302" ` + line(alice), alice, nil, "(a)"},
		"too early":           {`a valid-after="20260302Z" ` + line(alice), alice, nil, "!from 2026-03-02T00:00:00Z on"},
		"too late":            {`a valid-before="202603011200Z" ` + line(alice), alice, nil, "!until 2026-03-01T12:00:00Z"},
		"second line":         {`a valid-before="20200101Z" ` + line(alice) + "\nb " + line(alice), alice, nil, "(b)"},
		"authority beside":    {"* cert-authority " + line(bob) + "\na " + line(alice), alice, nil, "(a)"},
		"signed by authority": {"* cert-authority " + line(bob) + "\na " + line(alice), bob, nil, "!does not list"},
		"for files":           {"a " + line(alice), alice, func(s *sshsig) { s.Namespace = "file" }, `!for "file", not for Git`},
		"for nothing":         {"a " + line(alice), alice, func(s *sshsig) { s.Namespace = "" }, "!not for Git"},
		"version":             {"a " + line(alice), alice, func(s *sshsig) { s.Version = 2 }, "!cannot be read"},
		"hash":                {"a " + line(alice), alice, func(s *sshsig) { s.HashAlg = "sha1" }, "!cannot be read"},
		"key of another":      {"a " + line(alice), bob, func(s *sshsig) { s.PublicKey = alice.PublicKey().Marshal() }, "!is wrong"},
		"SHA-1":               {"a " + line(alice), alice, func(s *sshsig) { s.Signature = ssh.Marshal(ssh.Signature{Format: "ssh-rsa", Blob: []byte("x")}) }, "!SHA-1"},
		"nothing for a key":   {"a " + line(alice), alice, func(s *sshsig) { s.PublicKey = nil }, "!cannot be read"},
		"nothing for a sign":  {"a " + line(alice), alice, func(s *sshsig) { s.Signature = []byte{} }, "!cannot be read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			signers, err := parseAllowedSigners("f", []byte(tt.signers), time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			o := Object{Payload: []byte("tree x\n\none\n"), Who: "Alice <alice@example.com>", When: when}
			o.Signature = sign(t, tt.by, o.Payload, tt.change)
			by, err := (&Keys{ssh: signers}).Verify(o, false)
			why, refused := strings.CutPrefix(tt.want, "!")
			switch {
			case refused && (err == nil || !strings.Contains(err.Error(), why)):
				t.Errorf("%q, %v, want an error with %q", by, err, why)
			case !refused && (err != nil || !strings.Contains(by, tt.want) || !strings.HasPrefix(by, "SSH key SHA256:")):
				t.Errorf("%q, %v, want %q", by, err, tt.want)
			}
		})
	}
}

func TestTouch(t *testing.T) {
	t.Parallel()
	k := hardware{key(t, 1).PublicKey()}
	for flags, ok := range map[string]bool{"": false, "\x00": false, "\x04": false, "\x01": true, "\x05": true} {
		if err := touched(k, ssh.Signature{Rest: []byte(flags)}); (err == nil) != ok {
			t.Errorf("flags %q: %v", flags, err)
		}
	}
	if err := touched(key(t, 1).PublicKey(), ssh.Signature{}); err != nil {
		t.Errorf("a key in software: %v", err)
	}
}

// hardware is a key that says it is in a token.
type hardware struct{ ssh.PublicKey }

func (hardware) Type() string { return ssh.KeyAlgoSKED25519 }

func TestAllowedSignersFaults(t *testing.T) {
	t.Parallel()
	k := line(key(t, 1))
	tests := map[string]struct{ in, want string }{
		"empty":          {"", "lists nobody"},
		"comments":       {"# a\n\n", "lists nobody"},
		"authorities":    {"* cert-authority " + k, "only certificate authorities"},
		"no key":         {"a " + k + "\nalice@example.com\n", "f:2: no key"},
		"no principals":  {k, "f:1: no public key"},
		"a bad key":      {"a ssh-ed25519 AAAA", "f:1: no public key"},
		"a private key":  {"-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n", "f:1"},
		"unknown option": {"a no-touch " + k, `f:1: unknown option "no-touch"`},
		"a bad time":     {`a valid-after="soon" ` + k, `f:1: "soon" is not a time`},
		"a month of 13":  {`a valid-before="20261301" ` + k, `is not a time`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseAllowedSigners("f", []byte(tt.in), time.UTC)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	zone := time.FixedZone("here", 3600)
	signers, err := parseAllowedSigners("f", []byte(`a valid-after="20260101",valid-before="20260101103000Z" `+k), zone)
	if err != nil {
		t.Fatal(err)
	}
	if got := signers[0].after.UTC(); !got.Equal(time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC)) {
		t.Errorf("after %s: a time without a zone is one of this machine", got)
	}
	if got := signers[0].before.UTC(); !got.Equal(time.Date(2026, 1, 1, 10, 30, 0, 0, time.UTC)) {
		t.Errorf("before %s", got)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, tt := range map[string]struct {
		p    Policy
		want string
	}{
		"none":        {Policy{}, ""},
		"mode":        {Policy{Mode: "both", SSH: SSH{AllowedSignersFile: "x"}}, "must be commit"},
		"nobody":      {Policy{Mode: Commit}, "no signature is accepted"},
		"keys alone":  {Policy{SSH: SSH{AllowedSignersFile: "x"}}, "must be commit"},
		"as it is to": {Policy{Mode: Tag, PGP: PGP{KeyFiles: []string{"x"}}}, ""},
	} {
		if err := tt.p.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	for name, p := range map[string]Policy{
		"verify.pgp.keyFiles":            {Mode: Commit, PGP: PGP{KeyFiles: []string{filepath.Join(dir, "gone")}}},
		"no public key that can be read": {Mode: Commit, PGP: PGP{KeyFiles: []string{file("text", "hello")}}},
		"no public key":                  {Mode: Commit, PGP: PGP{KeyFiles: []string{file("empty", "")}}},
		"PGP SIGNATURE":                  {Mode: Commit, PGP: PGP{KeyFiles: []string{file("sig", "-----BEGIN PGP SIGNATURE-----\n\nwsA=\n=AAAA\n-----END PGP SIGNATURE-----\n")}}},
		"verify.ssh.allowedSignersFile":  {Mode: Commit, SSH: SSH{AllowedSignersFile: filepath.Join(dir, "gone")}},
		"more than":                      {Mode: Commit, SSH: SSH{AllowedSignersFile: file("large", strings.Repeat("#\n", maxFileBytes))}},
	} {
		if _, err := p.Load(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// TestExpiredPGPKeys lets a key expire between two signatures.
func TestExpiredPGPKeys(t *testing.T) {
	t.Parallel()
	born := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *packet.Config {
		return &packet.Config{Time: func() time.Time { return born.Add(d) }, Algorithm: packet.PubKeyAlgoEdDSA}
	}
	e, err := openpgp.NewEntity("Alice", "", "alice@example.com", at(0))
	if err != nil {
		t.Fatal(err)
	}
	payload := "tree x\n\none\n"
	made := map[string]string{}
	for name, d := range map[string]time.Duration{"before": time.Hour, "after": 72 * time.Hour} {
		var b strings.Builder
		if err := openpgp.ArmoredDetachSign(&b, e, strings.NewReader(payload), at(d)); err != nil {
			t.Fatal(err)
		}
		made[name] = b.String()
	}
	day := uint32(24 * 60 * 60)
	for _, id := range e.Identities {
		id.SelfSignature.KeyLifetimeSecs = &day
	}
	var private, public bytes.Buffer
	if err := e.SerializePrivate(&private, at(0)); err != nil { // It signs itself anew.
		t.Fatal(err)
	}
	if err := e.Serialize(&public); err != nil {
		t.Fatal(err)
	}
	var keys Keys
	if err := keys.pgp.add(public.Bytes()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		made  string
		again bool
		want  string
	}{
		{"before", false, "!has expired"},
		{"before", true, "alice@example.com"}, // It counted when the key was good.
		{"after", false, "!has expired"},
		{"after", true, "!has expired"},
	} {
		by, err := keys.Verify(Object{Payload: []byte(payload), Signature: []byte(made[tt.made])}, tt.again)
		why, refused := strings.CutPrefix(tt.want, "!")
		if refused && (err == nil || !strings.Contains(err.Error(), why)) || !refused && (err != nil || !strings.Contains(by, tt.want)) {
			t.Errorf("made %s it expired, again %t: %q, %v, want %q", tt.made, tt.again, by, err, tt.want)
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	keys := &Keys{}
	for text, want := range map[string]string{
		"":                                  "not signed",
		"-----BEGIN SIGNED MESSAGE-----\nx": "X.509",
		"hello":                             "X.509, or in a form",
		beginSSH + "\nx\n-----END SSH SIGNATURE-----\n": "verify.ssh lists no signers",
		beginPGP + "\nx\n": "verify.pgp names no keys",
	} {
		if _, err := keys.Verify(Object{Signature: []byte(text)}, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const head = "tree t\nparent p\nauthor A <a@x> 1 +0000\ncommitter C <c@x> 1767225600 +0100\n"
	who, when := "C <c@x>", time.Unix(1767225600, 0).UTC()
	commits := map[string]struct {
		raw  string
		want Object
	}{
		"unsigned":   {head + "\nm\n\nn\n", Object{Payload: []byte(head + "\nm\n\nn\n"), Who: who, When: when}},
		"no message": {head, Object{Payload: []byte(head), Who: who, When: when}},
		"signed":     {head + "gpgsig A\n B\n \n C\nencoding x\n\nm", Object{Payload: []byte(head + "encoding x\n\nm"), Signature: []byte("A\nB\n\nC\n"), Who: who, When: when}},
		"two hashes": {head + "gpgsig A\n B\ngpgsig-sha256 D\n tree evil\n E\nmergetag F\n G\n\nm", Object{Payload: []byte(head + "mergetag F\n G\n\nm"), Signature: []byte("A\nB\n"), Who: who, When: when}},
		"in message": {head + "\ngpgsig A\n B\n", Object{Payload: []byte(head + "\ngpgsig A\n B\n"), Who: who, When: when}},
	}
	for name, tt := range commits {
		got, err := ParseCommit([]byte(tt.raw))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := ParseCommit([]byte(head + "gpgsig A\nx y\ngpgsig B\n\nm")); err == nil {
		t.Error("two signatures are one")
	}
	const tag = "object o\ntype commit\ntag v1\ntagger T <t@x> 1767225600 +0000\n\nrelease\n"
	for name, tt := range map[string]struct{ message, signature string }{
		"unsigned": {"", ""},
		"signed":   {"", beginSSH + "\nx\n"},
		"twice":    {beginPGP + "\nx\n", beginSSH + "\ny\n"},
	} {
		got, err := ParseTag([]byte(tag + tt.message + tt.signature))
		if diff := cmp.Diff(Object{Payload: []byte(tag + tt.message), Signature: []byte(tt.signature), Who: "T <t@x>", When: when, Name: "v1"}, got); err != nil || diff != "" {
			t.Errorf("tag %s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// FuzzVerify looks for objects that crash what reads them before anything of them
// is known to be true.
func FuzzVerify(f *testing.F) {
	var keys Keys
	if data, err := os.ReadFile("testdata/keys.asc"); err == nil {
		_ = keys.pgp.add(data)
	}
	if data, err := os.ReadFile("testdata/allowed_signers"); err == nil {
		keys.ssh, _ = parseAllowedSigners("f", data, time.UTC)
	}
	for name := range recorded {
		if data, err := os.ReadFile(filepath.Join("testdata", name)); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func([]byte) (Object, error){ParseCommit, ParseTag} {
			if o, err := parse(data); err == nil {
				_, _ = keys.Verify(o, true)
			}
		}
	})
}
