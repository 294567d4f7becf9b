package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

const (
	// mostActed is the maximum number of recorded commands of a pull request.
	mostActed = 64
	// guarded is the minimum time between two rewrites of weir's comment after edits by others, unless a
	// command needs one.
	guarded = time.Minute
)

const editedText = "This comment was edited after it was written, so weir does not act on it, because not only its author can edit it. Write a new comment."

// acted is a command that weir executed or answered.
type acted struct {
	Comment int64  `json:"comment"`
	Command string `json:"command"`
}

func commandText(c forge.Command) string { return strings.TrimSpace(string(c.Name) + " " + c.Digest) }

// recordCommand records a command that was executed or answered. It does not record it after a temporary
// error, because the comment is then read again.
func (l *comments) recordCommand(k *openPull, c forge.Comment, command forge.Command, err error) error {
	if passing(err) {
		return err
	}
	k.Acted = slices.DeleteFunc(k.Acted, func(a acted) bool { return a.Comment == c.ID })
	if k.Acted = append(k.Acted, acted{c.ID, commandText(command)}); len(k.Acted) > mostActed {
		k.Acted = k.Acted[len(k.Acted)-mostActed:]
	}
	l.save(k)
	return err
}

// level returns a user's permission. It is read once per poll.
func (l *comments) level(ctx context.Context, user string) (forge.Level, error) {
	if level, known := l.levels[user]; known {
		return level, nil
	}
	level, err := l.Forge.Permission(ctx, user)
	if err == nil {
		l.levels[user] = level
	}
	return level, err
}

// doubt returns the reason why a comment's text may not be the original text of its author, or "" if it is.
// The forge can confirm the original text. If the forge does not show edits, a webhook confirms the text if
// it reported the same text when the comment was written.
func (l *comments) doubt(ctx context.Context, c forge.Comment) (string, error) {
	heardEdited, heardSame := l.Heard.editState(c)
	if heardEdited {
		return editedText, nil
	}
	edits, err := l.Forge.Edits(ctx, c)
	switch {
	case err != nil:
		return "", err
	case edits == forge.Edited:
		return editedText, nil
	case edits == forge.EditsUnknown && !heardSame:
		return "weir does not act on this comment, because it cannot tell whether somebody edited it: the forge does not show that, and no webhook reported the comment. " +
			"Set up the webhook of this source and write a new comment, or run the command `weir approve`.", nil
	}
	return "", nil
}

// answerEdited answers a comment that an edit turned into a command, or into a different command. The
// comment was read before the edit, or it is older than the comments that weir reads.
func (l *comments) answerEdited(ctx context.Context, k *openPull, c forge.Comment) error {
	command, ok := forge.ParseCommand(c.Body)
	before := slices.IndexFunc(k.Acted, func(a acted) bool { return a.Comment == c.ID })
	heard, _ := l.Heard.editState(c)
	if !ok || command.Name == forge.Unknown || c.UpdatedAt.Equal(c.CreatedAt) && !heard || before >= 0 && k.Acted[before].Command == commandText(command) {
		return nil
	}
	level, err := l.level(ctx, c.Author)
	if err != nil {
		return err
	}
	if edits, err := l.Forge.Edits(ctx, c); err != nil || edits != forge.Edited && !heard {
		return err // without an edit, the comment is listed for another reason
	}
	text := editedText
	if level < forge.Write {
		text = ""
	}
	return l.recordCommand(k, c, command, l.answer(ctx, k, c, forge.Refused, text, false))
}

// answerDenied answers a command that weir cannot execute because its token has no permission for a
// required read. It answers once per pull request and reason. It returns any other error.
func (l *comments) answerDenied(ctx context.Context, k *openPull, c forge.Comment, err error) error {
	var refusal *forgehttp.Error
	if !errors.As(err, &refusal) || refusal.Fault != forgehttp.FaultDenied {
		return err
	}
	l.log.Error("comment is not acted on", "pull", c.Number, "by", c.Author, "error", err)
	return l.once(ctx, k, c, "weir cannot act on comments here: "+refusal.Message+".")
}

// once answers that a comment is refused. It does not repeat the last such answer on the pull request.
func (l *comments) once(ctx context.Context, k *openPull, c forge.Comment, text string) error {
	said := text
	if k.Refused == text {
		said = ""
	}
	k.Refused = text
	l.save(k)
	return l.answer(ctx, k, c, forge.Refused, said, false)
}

// guard checks a comment of weir's own, and rewrites it if somebody edited it.
func (l *comments) guard(k *openPull, c forge.Comment) {
	if _, edited := l.Display.Written(l.Source, c, false); !edited || l.Now().Before(k.restored.Add(guarded)) {
		return
	}
	k.restored = l.Now()
	l.Event(events.Event{Kind: "comment-edited", Source: l.Source, Text: fmt.Sprintf("pull request %d: somebody edited the comment with weir's plan; weir writes it again", k.Number)})
	l.restore(k)
}

// restore rewrites weir's comment on a pull request.
func (l *comments) restore(k *openPull) {
	l.Display.Again(l.Source, k.Number)
	if k.shown.State == "" || k.shown.Unkept {
		k.asked = true // show the next plan
		return
	}
	l.pulls.show(k, k.shown)
}
