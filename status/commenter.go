package status

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// PostedComment is a comment that is on a forge.
type PostedComment struct {
	ID     int64
	Author string
	Body   string
}

// Commenter writes comments on the pull requests of one repository. Its errors are
// *forgehttp.Error.
type Commenter interface {
	// Dialect is how the forge's comments are written.
	Dialect() Dialect
	// Login is whose the token is: the author of what is written with it.
	Login(ctx context.Context) (string, error)
	// ListComments lists a pull request's comments, the oldest first.
	ListComments(ctx context.Context, number int64) ([]PostedComment, error)
	CreateComment(ctx context.Context, number int64, body string) (id int64, err error)
	EditComment(ctx context.Context, number, id int64, body string) error
	DeleteComment(ctx context.Context, number, id int64) error
}

// PullForge tells of pull requests: in statuses of their heads, and in comments.
type PullForge interface {
	Forge
	Commenter
}

// grant is what a token needs to do something, for who reads that it may not.
type grant struct {
	does       string // such as "write statuses"
	permission string // GitHub's, of an App or a fine-grained token
	scope      string
}

const (
	// commentPages bounds a listing of comments: a conversation of more than some
	// thousand has had its comment of weir early.
	commentPages = 50
	comments     = "write comments on pull requests"
)

// commentRefusal says what forges say of comments only: that the conversation is
// locked, and that a text is too long.
func commentRefusal(err error) error {
	var e *forgehttp.Error
	if errors.As(err, &e) && e.Status/100 == 4 && e.Status != http.StatusTooManyRequests && strings.Contains(strings.ToLower(e.Message), "locked") {
		return &forgehttp.Error{Forge: e.Forge, Fault: forgehttp.FaultRefused, Status: e.Status, Err: err,
			Message: "the conversation of the pull request is locked: unlock it to see the plan there; it is on weir's page meanwhile"}
	}
	return err
}

// tooLong reports whether a forge refuses a text for its length. Gitea's databases
// say so, and Gitea answers 500 then.
func tooLong(err error) bool {
	var e *forgehttp.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Status == http.StatusRequestEntityTooLarge || e.Status >= 400 && strings.Contains(strings.ToLower(e.Message), "too long")
}

// gone reports whether a forge says that there is no such thing.
func gone(err error) bool {
	var e *forgehttp.Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusGone)
}
