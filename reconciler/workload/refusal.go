package workload

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// messageLimit bounds the shown part of a server's message, in bytes.
const messageLimit = 300

// refusal converts a server's error answer and removes the credentials from it. It does so before shortening
// the message, because it could not recognize a part of a credential.
func refusal(status int, text []byte, secret bool, credentials []string) *Error {
	e := &Error{Status: status, Kind: Transient}
	switch {
	case status == http.StatusUnauthorized:
		e.Kind = Unauthorized
	case status == http.StatusForbidden:
		e.Kind = Forbidden
	case status == http.StatusNotFound:
		e.Kind = NotFound
	case status == http.StatusConflict:
		e.Kind = Conflict
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status == http.StatusGone, status >= 500:
	default: // includes redirects: this server is not the API server
		e.Kind = Invalid
	}
	e.Message = fmt.Sprintf("%d %s", status, http.StatusText(status))
	var said struct {
		Kind    string `json:"kind"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
		Details struct {
			Causes []metav1.StatusCause `json:"causes"`
		} `json:"details"`
	}
	if json.Unmarshal(text, &said) != nil || said.Kind != "Status" {
		return e
	}
	for _, cause := range said.Details.Causes {
		if cause.Type == policyv1.DisruptionBudgetCause && status == http.StatusTooManyRequests {
			// The message reports the refusal, and the cause names the budget.
			e.Kind, said.Message = Budget, cause.Message
		}
	}
	if secret && !unquoted(e.Kind, said.Message) {
		said.Message = said.Reason
	}
	for _, c := range credentials {
		if c != "" {
			said.Message = strings.ReplaceAll(said.Message, c, "(secret)")
		}
	}
	if said.Message != "" {
		e.Message += ": " + strings.ToValidUTF8(said.Message[:min(len(said.Message), messageLimit)], "")
	}
	return e
}

// unquoted reports whether a refusal to create a Secret quotes nothing of it: the message is the API
// server's own text about the caller's permission or a quota. The text of an admission webhook or policy may
// quote anything.
func unquoted(k Kind, message string) bool {
	return k == Forbidden && !strings.Contains(message, "denied") &&
		(strings.Contains(message, ` cannot create resource "secrets"`) || strings.Contains(message, "is forbidden: exceeded quota"))
}
