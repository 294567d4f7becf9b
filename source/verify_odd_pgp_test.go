package source_test

import (
	"bytes"
	"crypto"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// pgpKey makes a key.
func pgpKey(t *testing.T, at time.Time, config packet.Config) *openpgp.Entity {
	t.Helper()
	config.Time = func() time.Time { return at }
	if config.Algorithm == 0 {
		config.Algorithm = packet.PubKeyAlgoEdDSA
	}
	e, err := openpgp.NewEntity("Alice", "", "alice@example.com", &config)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func serialized(t *testing.T, e *openpgp.Entity) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := e.Serialize(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pgpSign makes a signature packet; change has its way before it is signed.
func pgpSign(t *testing.T, k *packet.PrivateKey, payload string, at time.Time, change func(*packet.Signature)) []byte {
	t.Helper()
	s := &packet.Signature{Version: 4, SigType: packet.SigTypeBinary, PubKeyAlgo: k.PubKeyAlgo, Hash: crypto.SHA256, CreationTime: at, IssuerKeyId: &k.KeyId}
	if change != nil {
		change(s)
	}
	h, err := s.PrepareSign(&packet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if s.SigType == packet.SigTypeText {
		payload = strings.ReplaceAll(payload, "\n", "\r\n")
	}
	h.Write([]byte(payload))
	if err := s.Sign(h, k, nil); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Serialize(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func armorPGP(t *testing.T, blob []byte, headers map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.SignatureType, headers)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(blob); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n")
	return b.String()
}

func TestOddPGPSignatures(t *testing.T) {
	t.Parallel()
	j := newJudges(t)
	born := time.Now().Add(-1000 * time.Hour).Truncate(time.Second)
	made := born.Add(time.Hour)
	alice := pgpKey(t, born, packet.Config{})
	j.trust(serialized(t, alice))
	mallory := pgpKey(t, born, packet.Config{})
	body, head := "one\n", j.head()
	blob := pgpSign(t, alice.PrivateKey, head+"\n"+body, made, nil)
	good := armorPGP(t, blob, nil)
	odd := func(change func(*packet.Signature)) string {
		return withSignature(head, body, armorPGP(t, pgpSign(t, alice.PrivateKey, head+"\n"+body, made, change), nil))
	}
	raw := func(b []byte) string { return withSignature(head, body, armorPGP(t, b, nil)) }
	lines := strings.SplitAfter(good, "\n")
	sum := ""
	for i, l := range lines {
		if strings.HasPrefix(l, "=") {
			sum = lines[i]
		}
	}
	of := func(payload string) string { return armorPGP(t, pgpSign(t, alice.PrivateKey, payload, made, nil), nil) }
	hour := uint32(3600)
	for name, tt := range map[string]struct {
		raw  string
		want bool
	}{
		"as it should be":          {withSignature(head, body, good), true},
		"unknown key":              {withSignature(head, body, armorPGP(t, pgpSign(t, mallory.PrivateKey, head+"\n"+body, made, nil), nil)), false},
		"other bytes":              {withSignature(head, "two\n", good), false},
		"twice in a header":        {raw(append(bytes.Clone(blob), blob...)), false},
		"a second block":           {withSignature(head, body, good+good), false},
		"a second, bad block":      {withSignature(head, body, good+armorPGP(t, pgpSign(t, mallory.PrivateKey, "x", made, nil), nil)), false},
		"a bad block first":        {withSignature(head, body, armorPGP(t, pgpSign(t, mallory.PrivateKey, "x", made, nil), nil)+good), false},
		"a broken block first":     {withSignature(head, body, "-----BEGIN PGP SIGNATURE-----\nx\n"+good), false},
		"trailing text":            {withSignature(head, body, good+"hello\n"), false},
		"armor with headers":       {withSignature(head, body, armorPGP(t, blob, map[string]string{"Comment": "x", "Version": "GnuPG"})), true},
		"blank lines behind":       {withSignature(head, body, good+"\n\n"), true}, // GitHub's are so.
		"CRLF":                     {withSignature(head, body, strings.ReplaceAll(good, "\n", "\r\n")), true},
		"checksum wrong":           {withSignature(head, body, strings.Replace(good, sum, "=AAAA\n", 1)), false},
		"no end":                   {withSignature(head, body, strings.Split(good, "-----END")[0]), false},
		"no checksum":              {withSignature(head, body, strings.Replace(good, sum, "", 1)), true},
		"data behind the checksum": {withSignature(head, body, strings.Replace(good, sum, sum+"AAAA\n", 1)), false},
		"message type":             {withSignature(head, body, strings.ReplaceAll(good, "SIGNATURE", "MESSAGE")), false},
		"trailing packet":          {raw(append(bytes.Clone(blob), 0xb4, 3, 'a', 'b', 'c')), false},
		"trailing byte":            {raw(append(bytes.Clone(blob), 0)), false},
		"leading marker packet":    {raw(append([]byte{0xca, 3, 'P', 'G', 'P'}, blob...)), false},
		"leading padding":          {raw(append([]byte{0xd5, 3, 'P', 'G', 'P'}, blob...)), false},
		"compressed":               {raw(append([]byte{0xa3, 0}, blob...)), false},
		"text mode":                {odd(func(s *packet.Signature) { s.SigType = packet.SigTypeText }), true},
		"standalone":               {odd(func(s *packet.Signature) { s.SigType = 2 }), false},
		"of a key":                 {odd(func(s *packet.Signature) { s.SigType = packet.SigTypeGenericCert }), false},
		"before the key":           {odd(func(s *packet.Signature) { s.CreationTime = born.Add(-time.Hour) }), false},
		"from the future":          {odd(func(s *packet.Signature) { s.CreationTime = time.Now().Add(48 * time.Hour) }), true},
		"expired":                  {odd(func(s *packet.Signature) { s.SigLifetimeSecs = &hour }), false},
		"unknown critical notation": {odd(func(s *packet.Signature) {
			s.Notations = []*packet.Notation{{Name: "x@example.com", Value: []byte("y"), IsCritical: true, IsHumanReadable: true}}
		}), false},
		"notation": {odd(func(s *packet.Signature) {
			s.Notations = []*packet.Notation{{Name: "x@example.com", Value: []byte("y"), IsHumanReadable: true}}
		}), true},
		"gpgsig-like header": {head + "gpgsigner x\n" + header("gpgsig", of(head+"gpgsigner x\n\n"+body)) + "\n" + body, false},
		"version 3":          {raw([]byte("\x88\x1c\x03\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x16\x08\x00\x00\x00\x01\x01\x00\x01\x01")), false},
		"huge length":        {raw([]byte("\xc2\xff\xff\xff\xff\xff\x06\x00\x16\x08\xff\xff\xff\xff")), false},
		"huge number":        {raw(append(bytes.Clone(blob[:len(blob)-68]), 0xff, 0xff, 1)), false},
		"partial lengths":    {raw(partial(blob)), false},
	} {
		t.Run(name, func(t *testing.T) { j.check(t, "commit", tt.raw, tt.want) })
	}
}

// partial writes a packet with a length in pieces, which only data may have.
func partial(b []byte) []byte {
	head := 2
	if b[1] >= 192 {
		head = 3
	}
	content := b[head:]
	out := []byte{b[0], 0xe0 + 5}
	out = append(out, content[:32]...)
	out = append(out, byte(len(content)-32))
	return append(out, content[32:]...)
}

// TestRevokedCopy lists a key twice, once from before it was revoked.
func TestRevokedCopy(t *testing.T) {
	t.Parallel()
	j := newJudges(t)
	born := time.Now().Add(-1000 * time.Hour).Truncate(time.Second)
	e := pgpKey(t, born, packet.Config{})
	body, head := "one\n", j.head()
	raw := withSignature(head, body, armorPGP(t, pgpSign(t, e.PrivateKey, head+"\n"+body, born.Add(time.Hour), nil), nil))
	j.trust(serialized(t, e))
	j.check(t, "commit", raw, true)
	if err := e.RevokeKey(packet.KeySuperseded, "", &packet.Config{}); err != nil {
		t.Fatal(err)
	}
	j.trust(serialized(t, e))
	j.check(t, "commit", raw, false)
}

// TestKeyExpires lets a PGP key run out: what was taken stays, over a restart too,
// and nothing new is taken.
func TestKeyExpires(t *testing.T) {
	t.Parallel()
	born := time.Now().Add(-1000 * time.Hour).Truncate(time.Second)
	e := pgpKey(t, born, packet.Config{})
	repo := sourcetest.New(t)
	sign := func(payload string) string {
		return armorPGP(t, pgpSign(t, e.PrivateKey, payload, born.Add(time.Hour), nil), nil)
	}
	repo.Write(map[string]string{"f": "1"})
	one := repo.Signed(repo.Commit("one"), sign)
	repo.Branch("main", one)
	file := filepath.Join(t.TempDir(), "keys")
	overwrite(t, file, string(serialized(t, e)))
	cfg := source.Config{URL: repo.URL(), Dir: t.TempDir(), Verify: signature.Policy{Mode: signature.Commit, PGP: signature.PGP{KeyFiles: []string{file}}}}
	wantRevision(t, open(t, cfg, source.Options{}), one)

	day := uint32(24 * 3600)
	for _, id := range e.Identities {
		id.SelfSignature.KeyLifetimeSecs = &day
	}
	if err := e.SerializePrivate(&bytes.Buffer{}, &packet.Config{Time: func() time.Time { return born }}); err != nil { // It signs itself anew.
		t.Fatal(err)
	}
	overwrite(t, file, string(serialized(t, e)))
	g := open(t, cfg, source.Options{})
	if s, ok := g.Last(); !ok || s.Revision != one {
		t.Errorf("after a restart the last good one is %+v, want %s", s, one)
	}
	wantRevision(t, g, one)
	repo.Write(map[string]string{"f": "2"})
	two := repo.Signed(repo.Commit("two"), sign)
	repo.Branch("main", two)
	wantUnverified(t, g, two, "which has expired: put the key with its new date")
	wantUnverified(t, open(t, source.Config{URL: repo.URL(), Dir: t.TempDir(), Verify: cfg.Verify}, source.Options{}), two)
}

func TestOddPGPKeys(t *testing.T) {
	t.Parallel()
	born := time.Now().Add(-1000 * time.Hour).Truncate(time.Second)
	made := born.Add(time.Hour)
	day, hour := uint32(24*3600), uint32(3600)
	resign := func(t *testing.T, e *openpgp.Entity) {
		t.Helper()
		if err := e.SerializePrivate(&bytes.Buffer{}, &packet.Config{Time: func() time.Time { return born }}); err != nil {
			t.Fatal(err)
		}
	}
	expire := func(t *testing.T, e *openpgp.Entity) {
		for _, id := range e.Identities {
			id.SelfSignature.KeyLifetimeSecs = &day
		}
		resign(t, e)
	}
	revoke := func(t *testing.T, e *openpgp.Entity, reason packet.ReasonForRevocation, at time.Time) {
		if err := e.RevokeKey(reason, "", &packet.Config{Time: func() time.Time { return at }}); err != nil {
			t.Fatal(err)
		}
	}
	subkey := func(t *testing.T, e *openpgp.Entity) *openpgp.Subkey {
		if err := e.AddSigningSubkey(&packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return born }}); err != nil {
			t.Fatal(err)
		}
		return &e.Subkeys[len(e.Subkeys)-1]
	}
	for name, tt := range map[string]struct {
		// make gives the key that signs.
		make   func(*testing.T, *openpgp.Entity) *packet.PrivateKey
		at     time.Time
		change func(*packet.Signature)
		want   bool
	}{
		"primary": {func(_ *testing.T, e *openpgp.Entity) *packet.PrivateKey { return e.PrivateKey }, made, nil, true},
		"expired since": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			expire(t, e)
			return e.PrivateKey
		}, made, nil, false},
		"had expired": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			expire(t, e)
			return e.PrivateKey
		}, made.Add(48 * time.Hour), nil, false},
		"expired since, and so has the signature": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			expire(t, e)
			return e.PrivateKey
		}, made, func(s *packet.Signature) { s.SigLifetimeSecs = &hour }, false},
		"retired": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			revoke(t, e, packet.KeyRetired, made.Add(time.Hour))
			return e.PrivateKey
		}, made, nil, false},
		"compromised": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			revoke(t, e, packet.KeyCompromised, made.Add(time.Hour))
			return e.PrivateKey
		}, made, nil, false},
		"expired since and retired": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			expire(t, e)
			revoke(t, e, packet.KeyRetired, made.Add(time.Hour))
			return e.PrivateKey
		}, made, nil, false},
		"signing subkey": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey { return subkey(t, e).PrivateKey }, made, nil, true},
		"encryption subkey": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			s := subkey(t, e)
			s.Sig.FlagSign, s.Sig.FlagEncryptStorage, s.Sig.FlagEncryptCommunications, s.Sig.EmbeddedSignature = false, true, true, nil
			resign(t, e)
			return s.PrivateKey
		}, made, nil, false},
		"subkey without the key's word": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			s := subkey(t, e)
			s.Sig.EmbeddedSignature = nil
			if err := s.Sig.SignKey(s.PublicKey, e.PrivateKey, nil); err != nil {
				t.Fatal(err)
			}
			return s.PrivateKey
		}, made, nil, false},
		"revoked subkey": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			s := subkey(t, e)
			if err := e.RevokeSubkey(s, packet.KeyRetired, "", &packet.Config{Time: func() time.Time { return made.Add(time.Hour) }}); err != nil {
				t.Fatal(err)
			}
			return s.PrivateKey
		}, made, nil, false},
		"expired subkey, retired": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			s := subkey(t, e)
			s.Sig.KeyLifetimeSecs = &day
			if err := s.Sig.SignKey(s.PublicKey, e.PrivateKey, nil); err != nil {
				t.Fatal(err)
			}
			if err := e.RevokeSubkey(s, packet.KeyRetired, "", &packet.Config{Time: func() time.Time { return made.Add(time.Hour) }}); err != nil {
				t.Fatal(err)
			}
			return s.PrivateKey
		}, made, nil, false},
		"subkey of a revoked key": {func(t *testing.T, e *openpgp.Entity) *packet.PrivateKey {
			s := subkey(t, e)
			revoke(t, e, packet.KeyRetired, made.Add(time.Hour))
			return s.PrivateKey
		}, made, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJudges(t)
			e := pgpKey(t, born, packet.Config{})
			k := tt.make(t, e)
			j.trust(serialized(t, e))
			payload := j.head() + "\none\n"
			j.check(t, "commit", withSignature(j.head(), "one\n", armorPGP(t, pgpSign(t, k, payload, tt.at, tt.change), nil)), tt.want)
		})
	}
}
