package awsemu

import (
	"encoding/json"
	"time"
)

// clientTokenLife is how long a client token is remembered.
const clientTokenLife = 24 * time.Hour

const timerForgetToken = "core.forget-token"

// clientToken remembers the answer to a call that carried a client token.
type clientToken struct {
	Digest   string // of the request
	Answer   []byte // as the first call's
	Resource string // what the call made or changed, in the caller's words
}

// idempotent runs a call at most once for each client token. The same token with
// the same parameters gets the first answer again, with other parameters a fault.
// do returns a name for what the call made; where alive no longer finds it, the
// token is forgotten and the call runs anew. An empty token always runs.
func (rq *request) idempotent(token string, alive func(resource string) bool, do func() (string, error)) error {
	key := rq.svc.Name + ":" + rq.op.name + ":" + token
	if known := rq.region.Tokens[key]; token != "" && known != nil && alive(known.Resource) {
		if known.Digest != rq.digest() {
			return rq.svc.dialect.tokenMismatch()
		}
		return rq.restore(known.Answer)
	}
	resource, err := do()
	if err != nil || token == "" {
		return err
	}
	saved, err := rq.saved()
	if err != nil {
		return err
	}
	if rq.region.Tokens[key] == nil {
		rq.region.after(clientTokenLife, timerForgetToken, key)
	}
	rq.region.Tokens[key] = &clientToken{Digest: rq.digest(), Answer: saved, Resource: resource}
	return nil
}

func (rq *request) saved() ([]byte, error) {
	if rq.params != nil {
		return append([]byte(nil), rq.xml.buf...), nil
	}
	return json.Marshal(rq.reply)
}

func (rq *request) restore(answer []byte) error {
	if rq.params != nil {
		rq.xml.buf = append(rq.xml.buf[:0], answer...)
		return nil
	}
	rq.reply = json.RawMessage(answer)
	return nil
}

func forgetToken(r *region, key string) { delete(r.Tokens, key) }
