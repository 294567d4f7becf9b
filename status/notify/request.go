package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// messageSchema identifies the format of a Message.
const messageSchema = "weir.dev/event/v1"

// Message is the body of a notification, as JSON.
type Message struct {
	Schema   string       `json:"schema"`
	Instance string       `json:"instance"`
	Event    events.Event `json:"event"`
}

// The headers of a notification. The signature is "sha256=" and the hexadecimal HMAC-SHA256 of timestamp, a
// full stop, and the body. The delivery ID stays the same when an event is sent again; the timestamp, in
// Unix seconds, does not.
const (
	HeaderEvent     = "X-Weir-Event"
	headerDelivery  = "X-Weir-Delivery"
	HeaderTimestamp = "X-Weir-Timestamp"
	HeaderSignature = "X-Weir-Signature-256"
)

// Sign returns the signature of a notification.
func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// notifyRefusal is a response with a status other than 2xx.
type notifyRefusal struct {
	status int
	passes bool
	after  time.Duration
}

func (e *notifyRefusal) Error() string {
	s := "the receiver answers " + strconv.Itoa(e.status) + " " + http.StatusText(e.status)
	switch {
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		s += ": it expects another secret than the one in secretFile"
	case e.status/100 == 3:
		s += ": redirects are not followed; configure the new address"
	}
	return s
}

// attempt sends an event once. Its errors do not contain the address, because that may include a secret.
func (w *sender) attempt(ctx context.Context, d *delivery) error {
	secret, err := readNotifySecret(w.to.SecretFile)
	if err != nil {
		return err
	}
	body, err := json.Marshal(Message{Schema: messageSchema, Instance: w.o.Instance, Event: d.Event})
	if err != nil {
		return fmt.Errorf("encode notification: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.to.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the receiver's address is none")
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	for key, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "weir/" + w.o.Version, HeaderEvent: d.Kind, headerDelivery: d.id,
		HeaderTimestamp: timestamp, HeaderSignature: Sign(secret, timestamp, body),
	} {
		req.Header.Set(key, value)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("send notification: %w", err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // allows the connection to be reused
	_ = resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return nil
	}
	refusal := &notifyRefusal{status: resp.StatusCode, after: forgehttp.RetryAfter(resp.Header)}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusTooEarly:
		refusal.passes = true
	default:
		refusal.passes = resp.StatusCode >= 500
	}
	return refusal
}

func readNotifySecret(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read notification secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < minNotifySecret {
		return nil, fmt.Errorf("read notification secret: %s has fewer than %d characters; openssl rand -hex 32 makes a good one", file, minNotifySecret)
	}
	return []byte(secret), nil
}
