package access

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/state/files"
)

// Without TLS, any user of this machine may be listening at one of its addresses, so no token is sent
// there. Instead, client and daemon prove to each other that they have the same key: the key of the state
// directory, or a token. The client sends a hello with a nonce and its signature. The daemon answers with a
// session and a signature of both. The client then signs its request for that session. An attacker between
// client and daemon learns no key, and can only forward the request once, or drop it.

// ProofPath is the path for a hello to the daemon.
const ProofPath = "/api/v1/proof"

const (
	proofScheme = "Weir"
	// proofFor is the time within which a request must follow its hello. mostProofs is the maximum number
	// of open sessions of one key.
	proofFor   = time.Minute
	mostProofs = 100
)

// errUnproven means that a daemon did not prove that it has the key.
var errUnproven = errors.New("it cannot prove that it is the expected daemon, so weir sent it nothing")

// Proof authenticates a client to a daemon without revealing the key.
type Proof struct {
	key  seals
	user string
}

// LocalProof returns a proof with the key of a state directory. It authenticates the owner of the
// directory, because any user who can read it can read all data of the daemon. ok is false if the directory
// cannot be read.
func LocalProof(stateDir, user string) (p Proof, ok bool) {
	key, err := files.ReadKey(keyOf(stateDir))
	return Proof{seals{key: key}, user}, err == nil
}

// TokenProof returns a proof with a token.
func TokenProof(token string) Proof { return Proof{key: seals{key: []byte(token)}} }

// Hello returns the Authorization header of a request to ProofPath.
func (p Proof) Hello() (nonce, header string) {
	nonce = random()
	return nonce, proofScheme + " " + nonce + "." + text(p.key.mac("hello", []byte(nonce)))
}

// welcome is the daemon's response to a hello.
type welcome struct {
	Session string `json:"session"`
	Proof   string `json:"proof"`
}

// Sign verifies the response to a hello, and returns the Authorization header of the actual request.
func (p Proof) Sign(nonce string, answer []byte, method, uri string, body []byte) (header string, err error) {
	var w welcome
	if json.Unmarshal(answer, &w) != nil || !p.key.marks("welcome", nonce+"\x00"+w.Session, w.Proof) {
		return "", errUnproven
	}
	user := text([]byte(p.user))
	return proofScheme + " " + w.Session + "." + user + "." + text(p.key.mac("request", asked(w.Session, user, method, uri, body))), nil
}

// asked returns the bytes of a request to be signed.
func asked(session, user, method, uri string, body []byte) []byte {
	sum := sha256.Sum256(body)
	return []byte(strings.Join([]string{session, user, method, uri, text(sum[:])}, "\x00"))
}

func text(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// marks reports whether mark is the signature of a value.
func (s seals) marks(purpose, value, mark string) bool {
	sum, err := base64.RawURLEncoding.DecodeString(mark)
	return err == nil && hmac.Equal(sum, s.mac(purpose, []byte(value)))
}

// proofs contains the sessions that wait for their request.
type proofs struct {
	mu  sync.Mutex
	all map[string]proof
}

type proof struct {
	key   []byte
	nonce string
	until time.Time
}

// session returns the same session for the same hello, so that a repeated hello uses no memory.
func (p *proofs) session(key []byte, nonce string, now time.Time) (session string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for s, one := range p.all {
		switch {
		case !now.Before(one.until):
			delete(p.all, s)
		case bytes.Equal(one.key, key) && one.nonce == nonce:
			return s, true
		case bytes.Equal(one.key, key):
			n++
		}
	}
	if n >= mostProofs {
		return "", false
	}
	if p.all == nil {
		p.all = map[string]proof{}
	}
	session = random()
	p.all[session] = proof{key, nonce, now.Add(proofFor)}
	return session, true
}

// end deletes a session, because it is valid for one request only.
func (p *proofs) end(session string, now time.Time) (key []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, ok := p.all[session]
	delete(p.all, session)
	return one.key, ok && now.Before(one.until)
}

// prove answers a hello. It only proves that it has a key to clients who have that key, so that nobody else
// learns which keys exist.
func (g *Guard) prove(p *Policy, rw http.ResponseWriter, r *http.Request) {
	nonce, mark, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), proofScheme+" "), ".")
	key, wait := g.keyOf(p, r, func(k seals) bool { return len(nonce) <= maxUser && k.marks("hello", nonce, mark) })
	if wait > 0 {
		g.refuseForNow(rw, r, wait)
		return
	}
	if key == nil {
		g.unknown(rw, r, p, "the token is unknown", "use one that the configuration lists under access.tokens")
		return
	}
	session, ok := g.proofs.session(key, nonce, g.now())
	if !ok {
		g.refuseForNow(rw, r, proofFor)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(welcome{session, text(seals{key: key}.mac("welcome", []byte(nonce+"\x00"+session)))}) // the reader may be gone
}

// keyOf finds the matching key: the key of the state directory, which cannot be guessed, or a token. After
// too many wrong proofs, an address must wait before another wrong proof is answered. A correct proof
// always works.
func (g *Guard) keyOf(p *Policy, r *http.Request, fits func(seals) bool) (key []byte, wait time.Duration) {
	if fits(g.seals) {
		return g.seals.key, 0
	}
	all, faulty := p.all()
	for _, err := range faulty {
		g.log.Error("a token cannot be used", "error", err)
	}
	for _, t := range all {
		if fits(seals{key: t}) {
			key = t
		}
	}
	if key == nil {
		from := network(p.origin(r))
		if wait := g.failed.try(from); wait > 0 {
			return nil, wait
		}
		g.log.Warn("a token was refused", "address", from)
	}
	return key, 0
}

// byProof identifies the signer of a request. The role comes from the current configuration. An upload is
// read only after its permission was checked. Until then, the session alone identifies the caller, and its
// owner has proved that they have the key.
func (g *Guard) byProof(p *Policy, r *http.Request, header string) (Caller, error) {
	parts := strings.Split(header, ".")
	if len(parts) != 3 {
		return Caller{}, errBadToken
	}
	key, ok := g.proofs.end(parts[0], g.now())
	user, err := base64.RawURLEncoding.DecodeString(parts[1])
	if !ok || err != nil || !isName(string(user), maxUser) {
		return Caller{}, errBadToken
	}
	c := Caller{Name: cmp.Or(string(user), "somebody"), Means: ByState, Role: Operate}
	if !bytes.Equal(key, g.seals.key) {
		t, ok, _ := p.find(key)
		if !ok {
			return Caller{}, errBadToken // the token was removed in between
		}
		c = Caller{Name: t.Name, Means: ByToken, Role: roleOf(t.Role)}
	}
	signed := func(r *http.Request) error {
		body, err := io.ReadAll(r.Body) // Handler has limited its size
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || !(seals{key: key}).marks("request", string(asked(parts[0], parts[1], r.Method, r.URL.RequestURI(), body)), parts[2]) {
			return errBadToken
		}
		return nil
	}
	if g.upload(r) == 0 {
		return c, signed(r)
	}
	c.signed = func(r *http.Request) error {
		select {
		case g.reading <- struct{}{}:
			defer func() { <-g.reading }()
			return signed(r)
		case <-r.Context().Done():
			return errBadToken
		}
	}
	return c, nil
}
