package source_test

import (
	"context"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// judges are weir and git, with the same keys.
type judges struct {
	t    *testing.T
	repo *sourcetest.Repo
	home string
	tree string
	pgp  []string // files with public keys
	ssh  string   // allowed signers
}

func newJudges(t *testing.T) *judges {
	t.Helper()
	for _, name := range []string{"gpg", "ssh-keygen"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1"})
	home, err := os.MkdirTemp("/tmp", "wg") // The path of gpg's sockets must be short.
	if err != nil {
		t.Skipf("no short path for gpg: %v", err)
	}
	j := &judges{t: t, repo: repo, home: home, ssh: filepath.Join(t.TempDir(), "allowed_signers")}
	t.Cleanup(func() {
		_, _ = j.command("gpgconf", "--kill", "all").CombinedOutput()
		_ = os.RemoveAll(home)
	})
	j.tree = repo.Git("rev-parse", repo.Commit("zero")+"^{tree}")
	return j
}

func (j *judges) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = j.repo.Dir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.home, "GNUPGHOME=" + j.home, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "TZ=UTC", "LC_ALL=C"}
	return cmd
}

// trust gives both a PGP key.
func (j *judges) trust(public []byte) {
	j.t.Helper()
	file := filepath.Join(j.t.TempDir(), "key")
	overwrite(j.t, file, string(public))
	if out, err := j.command("gpg", "--batch", "--import", file).CombinedOutput(); err != nil {
		j.t.Logf("gpg does not import the key: %v: %s", err, out)
	}
	j.pgp = append(j.pgp, file)
}

// weir and git tell whether they take an object.
func (j *judges) weir(kind, name string) error {
	j.t.Helper()
	cfg := source.Config{URL: j.repo.Dir(), Verify: signature.Policy{Mode: signature.Mode(kind), PGP: signature.PGP{KeyFiles: j.pgp}}}
	if _, err := os.Stat(j.ssh); err == nil {
		cfg.Verify.SSH.AllowedSignersFile = j.ssh
	}
	if kind == "tag" {
		cfg.Ref = source.Ref{Tag: "v1"}
	}
	_, err := open(j.t, cfg, source.Options{}).Latest(context.Background())
	var ue *fault.UnavailableError
	if err != nil && (!errors.As(err, &ue) || ue.Reason != fault.Unverified && ue.Reason != fault.Corrupt && ue.Reason != fault.MissingRef) {
		j.t.Fatalf("weir could not judge: %v", err)
	}
	return err
}

func (j *judges) git(kind, name string) error {
	out, err := j.command("git", "-c", "gpg.ssh.allowedSignersFile="+j.ssh, "verify-"+kind, name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// check stores an object and asks both. weir must refuse all that git refuses.
func (j *judges) check(t *testing.T, kind, raw string, want bool) {
	t.Helper()
	name := j.repo.GitInput([]byte(raw), "hash-object", "--literally", "-t", kind, "-w", "--stdin")
	if kind == "tag" {
		j.repo.Tag("v1", name)
	} else if err := os.WriteFile(filepath.Join(j.repo.Dir(), "refs/heads/main"), []byte(name+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, theirs := j.weir(kind, name), j.git(kind, name)
	switch {
	case ours == nil && theirs != nil:
		t.Errorf("weir takes what git refuses: %v\n%s", theirs, raw)
	case (ours == nil) != want:
		t.Errorf("weir says %v, git %v, of\n%q", ours, theirs, raw)
	}
}

const person = "Alice <alice@example.com>"

func (j *judges) head() string {
	return fmt.Sprintf("tree %s\nauthor %s 1767225600 +0000\ncommitter %s 1767225600 +0000\n", j.tree, person, person)
}

// withSignature puts a signature into a commit's header.
func withSignature(head, body string, armored string) string {
	return head + header("gpgsig", armored) + "\n" + body
}

func header(key, text string) string {
	return key + " " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n ") + "\n"
}

type sshsig struct {
	Version                                 uint32
	Key, Namespace, Reserved, Hash, Content string
}

func sshSign(t *testing.T, k ssh.Signer, payload string, change func(*sshsig, *ssh.Signature)) []byte {
	t.Helper()
	sum := sha512.Sum512([]byte(payload))
	s := sshsig{1, string(k.PublicKey().Marshal()), "git", "", "sha512", ""}
	if change != nil {
		change(&s, &ssh.Signature{})
	}
	sig, err := k.Sign(rand.Reader, append([]byte("SSHSIG"), ssh.Marshal(struct{ N, R, H, S string }{s.Namespace, s.Reserved, s.Hash, string(sum[:])})...))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&s, sig)
	}
	s.Content = string(ssh.Marshal(sig))
	return append([]byte("SSHSIG"), ssh.Marshal(s)...)
}

func armorSSH(blob []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob}))
}

func TestOddSSHSignatures(t *testing.T) {
	t.Parallel()
	j := newJudges(t)
	alice := sourcetest.NewSSHKey(t)
	overwrite(t, j.ssh, "alice@example.com "+string(ssh.MarshalAuthorizedKey(alice.PublicKey())))
	body := "one\n"
	head := j.head()
	good := armorSSH(sshSign(t, alice, head+"\n"+body, nil))
	of := func(payload string) string { return armorSSH(sshSign(t, alice, payload, nil)) }
	odd := func(change func(*sshsig, *ssh.Signature)) string {
		return withSignature(head, body, armorSSH(sshSign(t, alice, head+"\n"+body, change)))
	}
	lines := strings.SplitAfter(good, "\n")
	const evil = "0000000000000000000000000000000000000001"
	for name, tt := range map[string]struct {
		raw  string
		want bool
	}{
		"as it should be":                {withSignature(head, body, good), true},
		"twice":                          {head + header("gpgsig", good) + header("gpgsig", good) + "\n" + body, false},
		"other bytes":                    {withSignature(head, "two\n", good), false},
		"trailing text":                  {withSignature(head, body, good+"hello\n"), false},
		"trailing block":                 {withSignature(head, body, good+good), false},
		"leading line":                   {withSignature(head, body, "\n"+good), false},
		"leading junk block":             {withSignature(head, body, "-----BEGIN SSH SIGNATURE-----\n!!!!\n-----END SSH SIGNATURE-----\n"+good), false},
		"armor header":                   {withSignature(head, body, lines[0]+"Comment: x\n\n"+strings.Join(lines[1:], "")), false},
		"CRLF":                           {withSignature(head, body, strings.ReplaceAll(good, "\n", "\r\n")), false},
		"one line":                       {withSignature(head, body, lines[0]+strings.ReplaceAll(strings.Join(lines[1:len(lines)-2], ""), "\n", "")+"\n"+lines[len(lines)-2]), true},
		"blank in base64":                {withSignature(head, body, lines[0]+"\n"+strings.Join(lines[1:], "")), true},
		"no end":                         {withSignature(head, body, strings.Join(lines[:len(lines)-2], "")), false},
		"gpgsig first":                   {header("gpgsig", good) + head + "\n" + body, false},
		"gpgsig before the author":       {strings.Replace(head, "author", header("gpgsig", good)+"author", 1) + "\n" + body, true},
		"unknown header in front":        {head + "x y\n" + header("gpgsig", of(head+"x y\n\n"+body)) + "\n" + body, true},
		"gpgsig-like header, signed":     {head + "gpgsigner x\n" + header("gpgsig", of(head+"gpgsigner x\n\n"+body)) + "\n" + body, false},
		"gpgsig-like header, not signed": {head + "gpgsigner x\n" + header("gpgsig", good) + "\n" + body, false},
		"gpgsig-sha256":                  {head + header("gpgsig-sha256", "x\ntree "+evil) + header("gpgsig", good) + "\n" + body, true},
		"gpgsig-sha256 twice":            {head + header("gpgsig-sha256", "x") + header("gpgsig", good) + header("gpgsig-sha256", "y") + "\n" + body, true},
		"gpgsig without a space":         {head + "gpgsig\n " + good + "\n" + body, false},
		"second tree":                    {withSignature(head+"tree "+evil+"\n", body, of(head+"tree "+evil+"\n\n"+body)), true},
		"second committer, later":        {withSignature(head+"committer "+person+" 1899999999 +0000\n", body, of(head+"committer "+person+" 1899999999 +0000\n\n"+body)), true},
		"two authors":                    {withSignature(head+"author M <m@x> 1 +0000\n", body, of(head+"author M <m@x> 1 +0000\n\n"+body)), true},
		"late parent":                    {withSignature(head+"parent "+evil+"\n", body, of(head+"parent "+evil+"\n\n"+body)), true},
		"no message":                     {head + header("gpgsig", of(head)), true},
		"no message, blank line":         {withSignature(head, "", of(head+"\n")), true},
		"NUL in the message":             {withSignature(head, "a\x00b\n", of(head+"\na\x00b\n")), true},
		"NUL, more behind it":            {withSignature(head, body+"\x00evil", good), false},
		"NUL in a header":                {withSignature(head+"x \x00y\n", body, of(head+"x \x00y\n\n"+body)), true},
		"CR in a header":                 {withSignature(strings.ReplaceAll(head, "\n", "\r\n"), body, of(strings.ReplaceAll(head, "\n", "\r\n")+"\n"+body)), false},
		"no committer":                   {withSignature("tree "+j.tree+"\n", body, of("tree "+j.tree+"\n\n"+body)), false},
		"namespace with a NUL":           {odd(func(s *sshsig, _ *ssh.Signature) { s.Namespace = "git\x00" }), false},
		"reserved":                       {odd(func(s *sshsig, _ *ssh.Signature) { s.Reserved = "x" }), false},
		"version 0":                      {odd(func(s *sshsig, _ *ssh.Signature) { s.Version = 0 }), false},
		"trailing in the signature":      {odd(func(_ *sshsig, i *ssh.Signature) { i.Rest = []byte("x") }), false},
		"trailing in the blob":           {odd(func(_ *sshsig, i *ssh.Signature) { i.Blob = append(i.Blob, 0) }), false},
		"trailing in the key":            {odd(func(s *sshsig, _ *ssh.Signature) { s.Key += "x" }), false},
		"another algorithm's name":       {odd(func(_ *sshsig, i *ssh.Signature) { i.Format = "rsa-sha2-512" }), false},
		"trailing in the whole":          {withSignature(head, body, armorSSH(append(sshSign(t, alice, head+"\n"+body, nil), 0))), false},
		"huge length":                    {withSignature(head, body, armorSSH([]byte("SSHSIG\x00\x00\x00\x01\xff\xff\xff\xff"))), false},
		"base64 with bits left over":     {withSignature(head, body, looseBase64(t, good)), false},
	} {
		t.Run(name, func(t *testing.T) { j.check(t, "commit", tt.raw, tt.want) })
	}
}

func TestOddSignedTags(t *testing.T) {
	t.Parallel()
	j := newJudges(t)
	alice := sourcetest.NewSSHKey(t)
	overwrite(t, j.ssh, "alice@example.com "+string(ssh.MarshalAuthorizedKey(alice.PublicKey())))
	tagger := "tagger " + person + " 1767225600 +0000\n"
	commit := j.repo.Tip("main")
	head := "object " + commit + "\ntype commit\ntag v1\n" + tagger
	signed := func(payload string) string { return payload + armorSSH(sshSign(t, alice, payload, nil)) }
	good := signed(head + "\nrelease\n")
	inner := j.repo.GitInput([]byte("object "+commit+"\ntype commit\ntag v0\n"+tagger+"\nx\n"), "hash-object", "-t", "tag", "-w", "--stdin")
	innerSigned := j.repo.GitInput([]byte(good), "hash-object", "-t", "tag", "-w", "--stdin")
	for name, tt := range map[string]struct {
		raw  string
		want bool
	}{
		"as it should be":             {good, true},
		"not signed":                  {head + "\nrelease\n", false},
		"text behind the signature":   {good + "and more\n", false},
		"blank line behind":           {good + "\n", true},
		"signed twice":                {signed(good), true},
		"a foreign signature last":    {good + "-----BEGIN SSH SIGNATURE-----\nx\n-----END SSH SIGNATURE-----\n", false},
		"a signature of X.509 behind": {good + "-----BEGIN SIGNED MESSAGE-----\nx\n-----END SIGNED MESSAGE-----\n", false},
		"signature in the header":     {strings.Replace(head, tagger, tagger+header("gpgsig", armorSSH(sshSign(t, alice, head+"\nrelease\n", nil))), 1) + "\nrelease\n", false},
		"another object, late":        {signed(head + "object " + strings.Repeat("1", 40) + "\n\nrelease\n"), true},
		"no tagger":                   {signed(strings.Replace(head, tagger, "", 1) + "\nrelease\n"), false},
		"two names":                   {signed(head + "tag v2\n\nrelease\n"), false},
		"another name":                {signed(strings.Replace(head, "tag v1", "tag v2", 1) + "\nrelease\n"), false},
		"of an unsigned tag":          {signed(strings.NewReplacer(commit, inner, "type commit", "type tag").Replace(head) + "\nrelease\n"), true},
		"unsigned, of a signed tag":   {strings.NewReplacer(commit, innerSigned, "type commit", "type tag").Replace(head) + "\nrelease\n", false},
		"of a tree":                   {signed(strings.NewReplacer(commit, j.tree, "type commit", "type tree").Replace(head) + "\nrelease\n"), false},
		"of a tree called a commit":   {signed(strings.Replace(head, commit, j.tree, 1) + "\nrelease\n"), false},
	} {
		t.Run(name, func(t *testing.T) { j.check(t, "tag", tt.raw, tt.want) })
	}
}

// looseBase64 sets bits that stand for nothing.
func looseBase64(t *testing.T, armored string) string {
	t.Helper()
	at := strings.LastIndex(armored, "=\n")
	if at < 0 {
		return armored
	}
	for armored[at-1] == '=' {
		at--
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return armored[:at-1] + string(alphabet[strings.IndexByte(alphabet, armored[at-1])|1]) + armored[at:]
}

func TestOddAllowedSigners(t *testing.T) {
	t.Parallel()
	j := newJudges(t)
	alice := sourcetest.NewSSHKey(t)
	line := string(ssh.MarshalAuthorizedKey(alice.PublicKey()))
	head, body := j.head(), "one\n"
	at := func(committers string) string {
		h := strings.Replace(head, "committer "+person+" 1767225600 +0000\n", committers, 1)
		return withSignature(h, body, armorSSH(sshSign(t, alice, h+"\n"+body, nil)))
	}
	then := at("committer " + person + " 1767225600 +0000\n")
	old, now := "committer "+person+" 1500000000 +0000\n", "committer "+person+" 1767225600 +0000\n"
	for name, tt := range map[string]struct {
		allowed, raw string
		want         bool
	}{
		"plain":                     {"a " + line, then, true},
		"class in a pattern":        {`a namespaces="[g]it" ` + line, then, false},
		"space in a list":           {`a namespaces="file, git" ` + line, then, false},
		"question mark":             {`a namespaces="g?t" ` + line, then, true},
		"until then":                {`a valid-before="20200101Z" ` + line, then, false},
		"dated back":                {`a valid-before="20200101Z" ` + line, at(old), true},
		"dated back, then not":      {`a valid-before="20200101Z" ` + line, at(old + now), true},
		"dated now, then back":      {`a valid-before="20200101Z" ` + line, at(now + old), false},
		"no date":                   {`a valid-before="20200101Z" ` + line, at("committer " + person + "\n"), false},
		"a word for a date":         {`a valid-before="20200101Z" ` + line, at("committer " + person + " soon +0000\n"), false},
		"a date beyond all numbers": {`a valid-before="20200101Z" ` + line, at("committer " + person + " 99999999999999999999999 +0000\n"), false},
		"a date before 1970":        {`a valid-before="20200101Z" ` + line, at("committer " + person + " -5 +0000\n"), false},
		"no committer":              {`a valid-before="20200101Z" ` + line, at(""), false},
		"a bracket in the name":     {`a valid-before="20200101Z" ` + line, at("committer A <a> 1500000000 +0000 <a@x> 1767225600 +0000\n"), false},
		"date without an address":   {`a valid-before="20200101Z" ` + line, at("committer Alice 1500000000 +0000\n"), false},
		"zero":                      {`a valid-before="20200101Z" ` + line, at("committer " + person + " 0 +0000\n"), false},
		"tab":                       {`a valid-before="20200101Z" ` + line, at("committer " + person + "\t1500000000 +0000\n"), true},
		"in a continued line":       {`a valid-before="20200101Z" ` + line, at("x y\n committer " + person + " 1500000000 +0000\n" + now), false},
	} {
		t.Run(name, func(t *testing.T) {
			overwrite(t, j.ssh, tt.allowed)
			j.check(t, "commit", tt.raw, tt.want)
		})
	}
}
