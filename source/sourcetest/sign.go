package sourcetest

import (
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Sign returns an armored signature of a payload.
type Sign func(payload string) string

// SSHSign signs like ssh-keygen -Y sign -n git.
func (r *Repo) SSHSign(key ssh.Signer) Sign { return r.SSHSignFor(key, "git") }

// SSHSignFor signs for a given namespace.
func (r *Repo) SSHSignFor(key ssh.Signer, namespace string) Sign {
	return func(payload string) string {
		sum := sha512.Sum512([]byte(payload))
		signed := append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{namespace, "", "sha512", string(sum[:])})...)
		sig, err := key.Sign(rand.Reader, signed)
		if err != nil {
			r.t.Fatal(err)
		}
		blob := append([]byte("SSHSIG"), ssh.Marshal(struct {
			Version                                 uint32
			Key, Namespace, Reserved, Hash, Content string
		}{1, string(key.PublicKey().Marshal()), namespace, "", "sha512", string(ssh.Marshal(sig))})...)
		return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob}))
	}
}

// Signed creates a signed copy of a commit, with the same tree, and returns its name. No branch points to it
// yet.
func (r *Repo) Signed(commit string, sign Sign) string {
	r.t.Helper()
	raw := string(r.raw("cat-file", "commit", commit))
	head, body, _ := strings.Cut(raw, "\n\n")
	signature := strings.ReplaceAll(strings.TrimSuffix(sign(raw), "\n"), "\n", "\n ")
	return r.run(r.dir, []byte(head+"\ngpgsig "+signature+"\n\n"+body), "hash-object", "-t", "commit", "-w", "--stdin")
}

// SignedTag creates a signed tag for a commit, with its ref, and returns the hash of the tag object.
func (r *Repo) SignedTag(name, commit string, sign Sign) string {
	r.t.Helper()
	text := fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger Weir Test <test@weir.dev> %d +0000\n\nrelease %s\n",
		commit, name, Epoch.Add(time.Duration(r.commits)*time.Minute).Unix(), name)
	tag := r.run(r.dir, []byte(text+sign(text)), "hash-object", "-t", "tag", "-w", "--stdin")
	r.Tag(name, tag)
	return tag
}
