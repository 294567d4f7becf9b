package signature

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make the recorded objects in testdata anew, with git, gpg and ssh-keygen")

// tools are git, gpg and ssh-keygen with a home of their own.
type tools struct {
	t    testing.TB
	dir  string // of the repository
	home string
}

func newTools(t testing.TB) *tools {
	t.Helper()
	for _, name := range []string{"git", "gpg", "ssh-keygen"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	// The path of gpg-agent's socket must be short.
	home, err := os.MkdirTemp("/tmp", "wg")
	if err != nil {
		t.Skipf("no short path for gpg-agent's socket: %v", err)
	}
	x := &tools{t: t, dir: t.TempDir(), home: home}
	t.Cleanup(func() {
		x.try("gpgconf", "--kill", "all")
		_ = os.RemoveAll(home)
	})
	if out, err := x.command("gpg-connect-agent", "/bye").CombinedOutput(); err != nil {
		t.Skipf("gpg-agent does not start here: %v: %s", err, out)
	}
	x.run("git", "init", "--quiet", "--initial-branch=main", ".")
	return x
}

func (x *tools) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = x.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + x.home, "GNUPGHOME=" + x.home, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Alice", "GIT_AUTHOR_EMAIL=alice@example.com", "GIT_COMMITTER_NAME=Alice", "GIT_COMMITTER_EMAIL=alice@example.com",
		"GIT_AUTHOR_DATE=1767225600 +0000", "GIT_COMMITTER_DATE=1767225600 +0000", "TZ=UTC",
	}
	return cmd
}

func (x *tools) try(name string, args ...string) string {
	out, _ := x.command(name, args...).CombinedOutput()
	return string(out)
}

func (x *tools) run(name string, args ...string) string {
	x.t.Helper()
	out, err := x.command(name, args...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// object gives a stored object as it is.
func (x *tools) object(kind, name string) []byte {
	x.t.Helper()
	out, err := x.command("git", "cat-file", kind, name).Output()
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

// sshKey makes a key and gives its file and its public line.
func (x *tools) sshKey(kind string) (file, public string) {
	x.t.Helper()
	file = filepath.Join(x.home, "key-"+kind)
	x.run("ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", file)
	text, err := os.ReadFile(file + ".pub")
	if err != nil {
		x.t.Fatal(err)
	}
	return file, strings.TrimSpace(string(text))
}

// pgpKey makes a key and gives its fingerprint.
func (x *tools) pgpKey(who, kind string) string {
	x.t.Helper()
	x.run("gpg", "--batch", "--passphrase", "", "--pinentry-mode", "loopback", "--quick-gen-key", who, kind, "sign", "never")
	for line := range strings.Lines(x.run("gpg", "--list-keys", "--with-colons", who)) {
		if f := strings.Split(line, ":"); f[0] == "fpr" {
			return f[9]
		}
	}
	x.t.Fatal("no fingerprint")
	return ""
}

func (x *tools) gpg(args ...string) []byte {
	x.t.Helper()
	out, err := x.command("gpg", append([]string{"--batch"}, args...)...).Output()
	if err != nil {
		x.t.Fatalf("gpg %v: %v", args, err)
	}
	return out
}

// with are the settings under which git signs with a key.
func with(format, key string) []string {
	return []string{"-c", "gpg.format=" + format, "-c", "user.signingKey=" + key}
}

// recorded are the objects in testdata, by the file's name, and what is signed.
var recorded = map[string]string{
	"ssh-ed25519-commit": "commit", "ssh-rsa-commit": "commit", "ssh-ecdsa-tag": "tag", "pgp-ed25519-commit": "commit", "pgp-rsa-tag": "tag", "ssh-merge-of-signed-tag-commit": "commit",
}

// record makes all of them with the real tools into dir.
func record(t *testing.T, dir string) {
	x := newTools(t)
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(name string, settings []string, message string) {
		x.run("git", append(settings, "commit", "--quiet", "--allow-empty", "--gpg-sign", "-m", message)...)
		write(name, x.object("commit", "HEAD"))
	}
	tag := func(name string, settings []string) {
		x.run("git", append(settings, "tag", "--sign", "-m", "release "+name, name)...)
		write(name, x.object("tag", name))
	}
	var allowed strings.Builder
	keys := map[string]string{}
	for _, kind := range []string{"ed25519", "rsa", "ecdsa"} {
		file, public := x.sshKey(kind)
		keys[kind] = file
		allowed.WriteString("alice@example.com namespaces=\"git\" " + public + "\n")
	}
	write("allowed_signers", []byte("# made by go test -update\n"+allowed.String()))
	ed, rsa := x.pgpKey("Alice <alice@example.com>", "ed25519"), x.pgpKey("Bob <bob@example.com>", "rsa2048")
	write("keys.asc", append(x.gpg("--armor", "--export", ed), x.gpg("--armor", "--export", rsa)...))

	commit("ssh-ed25519-commit", with("ssh", keys["ed25519"]), "one\n\nWith a body.\n")
	commit("ssh-rsa-commit", with("ssh", keys["rsa"]), "two")
	tag("ssh-ecdsa-tag", with("ssh", keys["ecdsa"]))
	commit("pgp-ed25519-commit", with("openpgp", ed), "three")
	tag("pgp-rsa-tag", with("openpgp", rsa))
	// A merge of a signed tag carries the tag with its signature in a header.
	x.run("git", "checkout", "--quiet", "-b", "side", "HEAD~1")
	x.run("git", append(with("ssh", keys["ed25519"]), "merge", "--quiet", "--no-ff", "--gpg-sign", "-m", "merge", "pgp-rsa-tag")...)
	write("ssh-merge-of-signed-tag-commit", x.object("commit", "HEAD"))
}

// check verifies all objects in dir, and each with a byte changed.
func check(t *testing.T, dir string) {
	keys, err := Policy{Mode: Either, PGP: PGP{KeyFiles: []string{filepath.Join(dir, "keys.asc")}}, SSH: SSH{AllowedSignersFile: filepath.Join(dir, "allowed_signers")}}.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range recorded {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			parse := ParseCommit
			if kind == "tag" {
				parse = ParseTag
			}
			o, err := parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			by, err := keys.Verify(o, false)
			if err != nil {
				t.Fatalf("%v, of\n%s", err, raw)
			}
			who := "alice@example.com"
			if name == "pgp-rsa-tag" {
				who = "Bob <bob@example.com>"
			}
			if !strings.Contains(by, who) {
				t.Errorf("signed by %q, want %s", by, who)
			}
			for at := range o.Payload {
				changed := o
				changed.Payload = append([]byte(nil), o.Payload...)
				changed.Payload[at] ^= 1
				if _, err := keys.Verify(changed, false); err == nil {
					t.Fatalf("byte %d of what is signed may be changed", at)
				}
			}
		})
	}
}

// TestRecorded reads objects that git made with gpg and ssh-keygen.
func TestRecorded(t *testing.T) {
	if *update {
		record(t, "testdata")
	}
	check(t, "testdata")
}

// TestAsMadeHere makes them again with what is installed.
func TestAsMadeHere(t *testing.T) {
	dir := t.TempDir()
	record(t, dir)
	check(t, dir)
}

// TestKeysThatDoNotCount makes PGP keys that are unknown, expired and revoked.
func TestKeysThatDoNotCount(t *testing.T) {
	x := newTools(t)
	fpr := x.pgpKey("Alice <alice@example.com>", "ed25519")
	other := x.pgpKey("Mallory <mallory@example.com>", "ed25519")
	x.run("git", append(with("openpgp", fpr), "commit", "--quiet", "--allow-empty", "--gpg-sign", "-m", "one")...)
	o, err := ParseCommit(x.object("commit", "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	verify := func(exported []byte) error {
		t.Helper()
		file := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(file, exported, 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := Policy{Mode: Commit, PGP: PGP{KeyFiles: []string{file}}}.Load()
		if err != nil {
			t.Fatal(err)
		}
		_, err = keys.Verify(o, false)
		return err
	}
	if err := verify(x.gpg("--export", fpr)); err != nil {
		t.Errorf("a key in binary: %v", err)
	}
	if err := verify(x.gpg("--armor", "--export", other)); err == nil || !strings.Contains(err.Error(), fpr+", which verify.pgp does not have") {
		t.Errorf("an unknown key: %v", err)
	}
	// A signature over SHA-1 proves nothing, whoever made it. EdDSA takes none.
	old := x.pgpKey("Old <old@example.com>", "rsa2048")
	weak := o
	payload := filepath.Join(x.home, "payload")
	if err := os.WriteFile(payload, o.Payload, 0o600); err != nil {
		t.Fatal(err)
	}
	good := o
	o.Signature = x.gpg("--armor", "--local-user", old, "--output", "-", "--detach-sign", payload)
	if err := verify(x.gpg("--export", old)); err != nil {
		t.Errorf("gpg's own signature: %v", err)
	}
	weak.Signature = x.gpg("--armor", "--digest-algo", "SHA1", "--local-user", old, "--output", "-", "--detach-sign", payload)
	o = weak
	if err := verify(x.gpg("--export", old)); err == nil || !strings.Contains(err.Error(), "uses SHA-1") {
		t.Errorf("a signature over SHA-1: %v", err)
	}
	o = good
	o.Signature = x.gpg("--armor", "--local-user", old, "--local-user", fpr, "--output", "-", "--detach-sign", payload)
	if err := verify(x.gpg("--export", fpr)); err == nil || !strings.Contains(err.Error(), "more than one") {
		t.Errorf("two signatures in one: %v", err)
	}
	o = good

	// An expiry that was changed later gives the key a newer signature of its own.
	x.run("gpg", "--batch", "--passphrase", "", "--pinentry-mode", "loopback", "--quick-set-expire", fpr, "1d")
	if err := verify(x.gpg("--export", fpr)); err != nil {
		t.Errorf("a key that will expire: %v", err)
	}
	certificate, err := os.ReadFile(filepath.Join(x.home, "openpgp-revocs.d", fpr+".rev"))
	if err != nil {
		t.Fatal(err)
	}
	// The colon keeps it from being used by accident.
	file := filepath.Join(x.home, "revoke")
	if err := os.WriteFile(file, []byte(strings.Replace(string(certificate), ":-----BEGIN", "-----BEGIN", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	x.run("gpg", "--batch", "--import", file)
	if err := verify(x.gpg("--export", fpr)); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("a revoked key: %v", err)
	}
}
