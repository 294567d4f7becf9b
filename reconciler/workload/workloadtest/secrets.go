package workloadtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// RemoveSecret removes a Secret, by namespace/name.
func (s *Server) RemoveSecret(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.secrets, key)
}

// AddSecret stores a Secret that weir did not create.
func (s *Server) AddSecret(namespace, name, kind string, labels map[string]string, data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uid++
	encoded := object{}
	for k, v := range data {
		encoded[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	marks := object{}
	for k, v := range labels {
		marks[k] = v
	}
	s.secrets[namespace+"/"+name] = object{"metadata": object{
		"namespace": namespace, "name": name, "uid": fmt.Sprintf("uid-%d", s.uid), "labels": marks,
		"creationTimestamp": s.clock().UTC().Format(time.RFC3339),
	}, "type": kind, "data": encoded}
}

// Secrets returns the data of all Secrets, decoded, by namespace/name.
func (s *Server) Secrets() map[string]map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]map[string]string{}
	for name, o := range s.secrets {
		data, _ := o["data"].(object)
		out[name] = map[string]string{}
		for k, v := range data {
			text, _ := v.(string)
			plain, _ := base64.StdEncoding.DecodeString(text)
			out[name][k] = string(plain)
		}
	}
	return out
}

// all handles requests about the Secrets of a namespace.
func (s *Server) all(namespace string, r *http.Request, body []byte) (int, object) {
	switch r.Method {
	case http.MethodGet:
		return s.list("Secret", s.secrets, namespace, r)
	case http.MethodPost:
		return s.create(namespace, body)
	}
	return refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "no such method")
}

func (s *Server) one(key, name string, r *http.Request, body []byte) (int, object) {
	have := s.secrets[key]
	if have == nil {
		return refuse(http.StatusNotFound, "NotFound", "secrets %q not found", name)
	}
	switch r.Method {
	case http.MethodGet:
		return http.StatusOK, have
	case http.MethodDelete:
		var o struct {
			Preconditions struct {
				UID string `json:"uid"`
			} `json:"preconditions"`
		}
		_ = json.Unmarshal(body, &o)
		m, _ := have["metadata"].(object)
		if o.Preconditions.UID != "" && o.Preconditions.UID != m["uid"] {
			return refuse(http.StatusConflict, "Conflict", "the UID in the precondition (%s) does not match the UID in record (%s)", o.Preconditions.UID, m["uid"])
		}
		delete(s.secrets, key)
		return http.StatusOK, object{"kind": "Status", "status": "Success"}
	}
	return refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "no such method")
}

func (s *Server) create(namespace string, body []byte) (int, object) {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return refuse(http.StatusBadRequest, "BadRequest", "%v", err)
	}
	m, _ := o["metadata"].(object)
	name, _ := m["name"].(string)
	if name == "" || o["kind"] != "Secret" {
		return refuse(http.StatusUnprocessableEntity, "Invalid", "Secret %q is invalid: %s", name, body)
	}
	labels, _ := m["labels"].(object)
	for k, v := range labels {
		if text, _ := v.(string); !validLabel(text) {
			return refuse(http.StatusUnprocessableEntity, "Invalid", "metadata.labels: Invalid value: %q: %v", k, v)
		}
	}
	data, _ := o["data"].(object)
	for k, v := range data {
		text, _ := v.(string)
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return refuse(http.StatusBadRequest, "BadRequest", "data %s is not base64", k)
		}
	}
	key := namespace + "/" + name
	if s.secrets[key] != nil {
		return refuse(http.StatusConflict, "AlreadyExists", "secrets %q already exists", name)
	}
	s.uid++
	m["namespace"], m["uid"], m["creationTimestamp"] = namespace, fmt.Sprintf("uid-%d", s.uid), s.clock().UTC().Format(time.RFC3339)
	s.secrets[key] = o
	return http.StatusCreated, o
}

// validLabel implements Kubernetes' rule for a label's value.
func validLabel(v string) bool {
	alnum := func(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
	if len(v) > 63 {
		return false
	}
	for i := range len(v) {
		inner := i > 0 && i < len(v)-1
		if !alnum(v[i]) && (!inner || !strings.ContainsRune("-_.", rune(v[i]))) {
			return false
		}
	}
	return true
}
