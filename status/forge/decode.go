package forge

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Hint is the change that a delivery claims to report.
type Hint struct {
	// Event is the forge's name of the event, such as "push".
	Event string
	// Delivery is the forge's ID of this delivery, empty if none exists.
	Delivery string
	// Repository is the path of the repository on its forge, such as owner/name. It is empty if the
	// delivery is not about a particular repository.
	Repository string
	// Ref is the full name of the changed ref, such as refs/heads/main, empty if the delivery does not name
	// it.
	Ref string
	// Commit is the ref's current commit, empty if the ref was deleted or the delivery does not name the
	// commit.
	Commit string
	// What is the subject of the change. It is empty for deliveries that weir ignores, such as about
	// statuses that weir itself wrote.
	What What
	// Number is the number of the pull request that was changed or commented on.
	Number int64
	// Sender is the login of the user who made the change, empty if the delivery does not name the user.
	// GitLab names the author of a comment, even if another user edited it.
	Sender string
	// Comment describes a comment. Its ID is 0 if the delivery is not about a comment.
	Comment Heard
}

// Heard is the text of a comment in a delivery. It can prove that somebody edited the comment before weir
// read it.
type Heard struct {
	ID int64 `json:"id"`
	// Sum is a hash of the text. Edited says that the delivery reports an edit.
	Sum    string `json:"sum"`
	Edited bool   `json:"edited,omitempty"`
}

// SumOf returns a hash of the start of a comment's text. It does not cover the rest, because a list may not
// contain more.
func SumOf(body string) string {
	sum := sha256.Sum256([]byte(Beginning(plainText(body))))
	return hex.EncodeToString(sum[:16])
}

// What is the subject of a delivery.
type What string

// The subjects of deliveries. A change of a pull request may also have changed its ref.
const (
	Pushed    What = "push"
	Changed   What = "pull"
	Commented What = "comment"
)

// maxWord is the maximum length of a text in a hint. Longer texts cannot be names.
const maxWord = 512

// decode decodes a delivery with a verified signature.
func decode(kind Kind, h http.Header, body []byte) (Hint, error) {
	p := ProfileOf(kind)
	hint := Hint{Event: clip(first(h, p.webhook.event)), Delivery: clip(first(h, p.webhook.delivery))}
	if p.webhook.decode == nil {
		return hint, fmt.Errorf("decode webhook: there is no kind %q", kind)
	}
	if hint.Event == "" && !p.webhook.withoutEvent {
		return hint, fmt.Errorf("decode webhook: the header %s is missing", p.webhook.event[len(p.webhook.event)-1])
	}
	body, err := jsonOf(h, body)
	if err != nil {
		return hint, err
	}
	if err := p.webhook.decode(&hint, body); err != nil {
		return hint, err
	}
	if hint.What == Changed {
		hint.Ref = p.HeadRef(hint.Number)
	}
	for _, word := range []string{hint.Repository, hint.Ref, hint.Commit, hint.Sender} {
		if len(word) > maxWord {
			return Hint{Event: hint.Event, Delivery: hint.Delivery}, errors.New("decode webhook: a name in it is too long")
		}
	}
	if zeros(hint.Commit) {
		hint.Commit = "" // the ref was deleted
	}
	return hint, nil
}

// jsonOf extracts the JSON from a form, which GitHub sends if the webhook's content type is a form.
func jsonOf(h http.Header, body []byte) ([]byte, error) {
	if kind, _, _ := strings.Cut(h.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		return body, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("payload") == "" {
		return nil, errors.New("decode webhook: a form without payload")
	}
	return []byte(form.Get("payload")), nil
}

func unmarshal(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return errors.New("decode webhook: the body is not the JSON of this event") // the text of the error may contain a secret
	}
	return nil
}

// github decodes deliveries of GitHub, and of Gitea and Forgejo, which have the same format. All of them
// also send comments on issues, and mark the ones on pull requests.
// https://docs.github.com/webhooks/webhook-events-and-payloads
func (hint *Hint) github(body []byte) error {
	var in struct {
		Action     string `json:"action"`
		Ref        string `json:"ref"`
		RefType    string `json:"ref_type"`
		After      string `json:"after"`
		Sha        string `json:"sha"`
		Number     int64  `json:"number"`
		Repository struct {
			FullName string `json:"full_name"`
		} `json:"repository"`
		PullRequest struct {
			Head struct {
				Sha string `json:"sha"`
			} `json:"head"`
		} `json:"pull_request"`
		Issue struct {
			Number      int64     `json:"number"`
			PullRequest *struct{} `json:"pull_request"`
		} `json:"issue"`
		Comment struct {
			ID   int64  `json:"id"`
			Body string `json:"body"`
		} `json:"comment"`
		Sender struct {
			Login string `json:"login"`
		} `json:"sender"`
	}
	switch hint.Event {
	case "push", "create", "delete", "pull_request", "issue_comment":
		if err := unmarshal(body, &in); err != nil {
			return err
		}
	default:
		return nil
	}
	switch hint.Event {
	case "push":
		hint.Ref, hint.Commit = in.Ref, in.After
	case "create", "delete":
		hint.Ref = refOf(in.Ref, in.RefType)
		if hint.Event == "create" {
			hint.Commit = in.Sha // only in Gitea's deliveries
		}
	case "pull_request":
		hint.What, hint.Number, hint.Commit = Changed, in.Number, in.PullRequest.Head.Sha
	case "issue_comment":
		if in.Issue.PullRequest == nil || in.Action == "deleted" {
			return nil
		}
		hint.What, hint.Number = Commented, in.Issue.Number
		hint.Comment = Heard{ID: in.Comment.ID, Sum: SumOf(in.Comment.Body), Edited: in.Action == "edited"}
	}
	hint.What = cmp.Or(hint.What, Pushed)
	hint.Repository, hint.Sender = in.Repository.FullName, in.Sender.Login
	return nil
}

// refOf expands the short name of a ref.
func refOf(name, kind string) string {
	switch {
	case name == "" || strings.HasPrefix(name, "refs/"):
		return name
	case kind == "tag":
		return "refs/tags/" + name
	default:
		return "refs/heads/" + name
	}
}

// gitlab decodes deliveries of GitLab's project, group and system hooks.
// https://docs.gitlab.com/user/project/integrations/webhook_events
func (hint *Hint) gitlab(body []byte) error {
	var in struct {
		Kind    string `json:"object_kind"`
		Name    string `json:"event_name"`
		Ref     string `json:"ref"`
		After   string `json:"after"`
		Project struct {
			Path string `json:"path_with_namespace"`
		} `json:"project"`
		User struct {
			Username string `json:"username"`
		} `json:"user"`
		Attributes struct {
			ID         int64  `json:"id"`
			Note       string `json:"note"`
			Action     string `json:"action"`
			IID        int64  `json:"iid"`
			Of         string `json:"noteable_type"` //nolint:misspell // GitLab spells it so
			LastCommit struct {
				ID string `json:"id"`
			} `json:"last_commit"`
		} `json:"object_attributes"`
		MergeRequest struct {
			IID int64 `json:"iid"`
		} `json:"merge_request"`
	}
	switch hint.Event {
	case "Push Hook", "Tag Push Hook", "Merge Request Hook", "Note Hook", "System Hook":
		if err := unmarshal(body, &in); err != nil {
			return err
		}
	default:
		return nil
	}
	switch cmp.Or(in.Kind, in.Name) {
	case "push", "tag_push":
		hint.What, hint.Ref, hint.Commit = Pushed, in.Ref, in.After
	case "merge_request":
		hint.What, hint.Number, hint.Commit = Changed, in.Attributes.IID, in.Attributes.LastCommit.ID
	case "note":
		if in.Attributes.Of != "MergeRequest" {
			return nil
		}
		hint.What, hint.Number = Commented, in.MergeRequest.IID
		hint.Comment = Heard{ID: in.Attributes.ID, Sum: SumOf(in.Attributes.Note), Edited: in.Attributes.Action == "update"}
	default:
		return nil
	}
	hint.Repository, hint.Sender = in.Project.Path, in.User.Username
	return nil
}

// generic decodes {"repository", "ref", "commit"}. Each field is optional, and so is the body.
func (hint *Hint) generic(body []byte) error {
	var in struct {
		Repository string `json:"repository"`
		Ref        string `json:"ref"`
		Commit     string `json:"commit"`
	}
	if len(strings.TrimSpace(string(body))) > 0 {
		if err := unmarshal(body, &in); err != nil {
			return err
		}
	}
	hint.What, hint.Repository, hint.Ref, hint.Commit = Pushed, in.Repository, in.Ref, in.Commit
	return nil
}

func zeros(s string) bool { return strings.Trim(s, "0") == "" }

// clip bounds the length of a header's value.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), 128)], "")
}

// names reports whether a repository that a hint names is the one at an address, which is a URL or has the
// form user@host:path. It does not compare hosts, because a forge may have several names.
func names(repository, address string) bool {
	if repository == "" {
		return true
	}
	own := pathOf(repository)
	at := pathOf(address)
	return own != "" && (strings.EqualFold(own, at) || len(at) > len(own) && strings.EqualFold(at[len(at)-len(own)-1:], "/"+own))
}

// pathOf returns the path of an address without leading and trailing slashes and .git.
func pathOf(address string) string {
	p := address
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		p = u.Path
	} else if _, after, ok := strings.Cut(address, ":"); ok && !strings.Contains(address, "://") {
		p = after
	}
	return strings.TrimSuffix(strings.Trim(p, "/"), ".git")
}
