// Package githubapp creates access tokens of a GitHub App's installation, as described in
// https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app. The App signs a short
// statement with its private key. GitHub returns a token for one repository, which is valid for an hour.
//
// Git and the forge's API share one App and its tokens.
//
// The usual library, ghinstallation, would replace about 50 of these lines. It does not have the functions of
// the other lines:
//
//   - find the installation of the repository, and accept a client id
//   - renew ten minutes early, and continue with the old token if GitHub fails
//   - notice a new key, and bound the size of an answer
//   - stop waiting when the context ends, and give advice about an error
//
// It also decodes an answer into its current token, so an answer without a token gives the old token a later
// expiry. And it does not close the body of an error response.
package githubapp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// renewBefore is the time before its expiry at which a token is replaced. If that fails, the old token is
	// used until lastUse before its expiry.
	renewBefore = 10 * time.Minute
	lastUse     = time.Minute
	// skew is the tolerated lag of GitHub's clock. statementLife is the lifetime of a statement; GitHub
	// accepts at most 10 minutes.
	skew          = time.Minute
	statementLife = 8 * time.Minute
	maxKeyBytes   = 64 << 10
	maxBodyBytes  = 1 << 20
	timeout       = 30 * time.Second
)

// Options of an App.
type Options struct {
	// API is the address of GitHub's REST API, such as https://api.github.com; see APIOf.
	API string
	// AppID is the App's number or its client id.
	AppID string
	// InstallationID is the number of the App's installation. Default: the installation of the repository.
	InstallationID string
	// Repository is owner/name. Tokens give access only to it.
	Repository string
	// KeyFile is a file with the App's private key in PEM. It is read for each token.
	KeyFile string
	// Transport is the HTTP transport. Default: http.DefaultTransport.
	Transport http.RoundTripper
	// Now returns the time. Default: time.Now.
	Now func() time.Time
	// OnToken is called with each token before its use, so that it can be kept out of all output. It may be
	// nil.
	OnToken func(token string)
}

// App creates the tokens of an installation. It is safe for concurrent use.
type App struct {
	o      Options
	client *http.Client
	// busy serializes requests for a token.
	busy chan struct{}

	mu           sync.Mutex
	token        string
	expires      time.Time
	key          [sha256.Size]byte
	installation string
}

// New returns an App. It does no input or output.
func New(o Options) (*App, error) {
	owner, name, ok := strings.Cut(o.Repository, "/")
	switch u, err := url.Parse(o.API); {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("make GitHub App: the API's address is not an http(s) URL")
	case o.AppID == "" || o.KeyFile == "":
		return nil, errors.New("make GitHub App: appID and privateKeyFile are required")
	case !ok || owner == "" || name == "" || strings.Contains(name, "/"):
		return nil, fmt.Errorf("make GitHub App: %q is not owner/name", o.Repository)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &App{
		o: o, busy: make(chan struct{}, 1), installation: o.InstallationID,
		client: &http.Client{Transport: o.Transport, Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the signed JWT must not follow a redirect to another server
		}},
	}, nil
}

// APIOf returns the address of the REST API for a repository's GitHub: github.com, a company's subdomain of
// ghe.com, or an Enterprise Server.
func APIOf(repository *url.URL) string {
	host := strings.ToLower(repository.Host)
	switch {
	case host == "github.com" || host == "www.github.com":
		return "https://api.github.com"
	case strings.HasSuffix(host, ".ghe.com"):
		return "https://api." + host
	default:
		return repository.Scheme + "://" + repository.Host + "/api/v3"
	}
}

// Token returns a token that is valid for at least a minute, and usually for ten. Its errors contain no
// secret and contain advice.
func (a *App) Token(ctx context.Context) (string, error) {
	select {
	case a.busy <- struct{}{}:
		defer func() { <-a.busy }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	key, sum, err := a.readKey()
	if err != nil {
		return "", err
	}
	now := a.o.Now()
	a.mu.Lock()
	if sum != a.key {
		a.token = "" // a person who replaces the key wants the tokens of the old key dropped
	}
	token, left, installation := a.token, a.expires.Sub(now), a.installation
	a.mu.Unlock()
	if token != "" && left > renewBefore {
		return token, nil
	}
	fresh, expires, installation, err := a.request(ctx, key, now, installation)
	if err != nil {
		if token != "" && left > lastUse {
			return token, nil
		}
		return "", err
	}
	if a.o.OnToken != nil {
		a.o.OnToken(fresh)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token, a.expires, a.key, a.installation = fresh, expires, sum, installation
	return fresh, nil
}

// Reject drops a token that a server did not accept. It also drops the installation if that was found through
// the repository.
func (a *App) Reject(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token == token {
		a.token, a.installation = "", a.o.InstallationID
	}
}

// request finds the installation, if it is unknown, and requests a token.
func (a *App) request(ctx context.Context, key *rsa.PrivateKey, now time.Time, installation string) (string, time.Time, string, error) {
	statement, err := a.statement(key, now)
	if err != nil {
		return "", time.Time{}, "", err
	}
	if installation == "" {
		var found struct {
			ID json.Number `json:"id"`
		}
		status, err := a.call(ctx, http.MethodGet, "/repos/"+a.o.Repository+"/installation", statement, nil, &found)
		if status == http.StatusNotFound {
			return "", time.Time{}, "", fmt.Errorf("GitHub App %s is not installed on %s, or the repository does not exist; install it there", a.o.AppID, a.o.Repository)
		}
		if err != nil {
			return "", time.Time{}, "", err
		}
		installation = found.ID.String()
	}
	_, name, _ := strings.Cut(a.o.Repository, "/")
	var made struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	status, err := a.call(ctx, http.MethodPost, "/app/installations/"+url.PathEscape(installation)+"/access_tokens", statement,
		map[string]any{"repositories": []string{name}}, &made)
	switch {
	case status == http.StatusNotFound:
		a.forget()
		return "", time.Time{}, "", fmt.Errorf("GitHub App %s has no installation %s (any more); check auth.githubApp.installationID, or leave it out to find it by the repository", a.o.AppID, installation)
	case status == http.StatusUnprocessableEntity:
		return "", time.Time{}, "", fmt.Errorf("installation %s of GitHub App %s does not reach %s: %w; give it access to the repository", installation, a.o.AppID, a.o.Repository, err)
	case err != nil:
		return "", time.Time{}, "", err
	case made.Token == "" || !made.ExpiresAt.After(now):
		return "", time.Time{}, "", errors.New("GitHub gave a token that has already expired; check this machine's clock")
	}
	return made.Token, made.ExpiresAt, installation, nil
}

func (a *App) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.installation = a.o.InstallationID
}

// call sends a request. The status is 0 if there was no answer.
func (a *App) call(ctx context.Context, method, path, statement string, send, into any) (status int, err error) {
	var body io.Reader
	if send != nil {
		text, err := json.Marshal(send)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(a.o.API, "/")+path, body)
	if err != nil {
		return 0, fmt.Errorf("ask GitHub for a token: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+statement)
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	if send != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask GitHub for a token: %w; check the network and the proxy", err)
	}
	defer func() { _ = resp.Body.Close() }() // Read as far as it is wanted.
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes))
	if err != nil {
		return 0, fmt.Errorf("ask GitHub for a token: %w", err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return resp.StatusCode, a.refusal(resp, bytes.ReplaceAll(text, []byte(statement), []byte("…")))
	}
	if err := json.Unmarshal(text, into); err != nil {
		// The parser's error may quote a token.
		return resp.StatusCode, fmt.Errorf("ask GitHub for a token: %s does not answer as GitHub's API does", req.URL.Host)
	}
	return resp.StatusCode, nil
}

// refusal returns the error for an unsuccessful answer.
func (a *App) refusal(resp *http.Response, text []byte) error {
	var said struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &said) != nil || said.Message == "" {
		said.Message = http.StatusText(resp.StatusCode)
	}
	message := fmt.Sprintf("%d %s", resp.StatusCode, plain(said.Message))
	limited := resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusForbidden && (resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0")
	switch {
	case limited:
		return fmt.Errorf("GitHub limits the requests of App %s (%s); it is tried again", a.o.AppID, message)
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("GitHub does not accept App %s (%s); check auth.githubApp.appID, that %s has a key of this App, and this machine's clock", a.o.AppID, message, a.o.KeyFile)
	case resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("GitHub refuses App %s a token (%s); the installation may be suspended", a.o.AppID, message)
	}
	return fmt.Errorf("GitHub answers %s", message)
}

// statement returns the JSON Web Token with which the App authenticates.
func (a *App) statement(key *rsa.PrivateKey, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"iat": now.Add(-skew).Unix(), "exp": now.Add(statementLife).Unix(), "iss": a.o.AppID})
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	signed := enc.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	sum := sha256.Sum256([]byte(signed))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign for GitHub App %s: %w", a.o.AppID, err)
	}
	return signed + "." + enc.EncodeToString(sig), nil
}

// readKey reads the private key. Its errors do not contain the parser's message.
func (a *App) readKey() (*rsa.PrivateKey, [sha256.Size]byte, error) {
	var sum [sha256.Size]byte
	info, err := os.Stat(a.o.KeyFile)
	if err != nil {
		return nil, sum, fmt.Errorf("read auth.githubApp.privateKeyFile: %w", err)
	}
	wrong := fmt.Errorf("auth.githubApp.privateKeyFile: %s has no RSA private key in PEM, the form in which GitHub offers it for download", a.o.KeyFile)
	if info.Size() > maxKeyBytes {
		return nil, sum, wrong
	}
	text, err := os.ReadFile(a.o.KeyFile)
	if err != nil {
		return nil, sum, fmt.Errorf("read auth.githubApp.privateKeyFile: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, sum, wrong
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, sha256.Sum256(text), nil
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := any.(*rsa.PrivateKey); err == nil && ok {
		return key, sha256.Sum256(text), nil
	}
	return nil, sum, wrong
}

// plain makes a server's text suitable for one line.
func plain(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return s
}
