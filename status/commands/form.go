package commands

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/reconciler/gates"
)

// formPrefix is the path prefix of the forms of the page: suspend, resume, approve, unapprove,
// reconcile, accept, rollout.
const formPrefix = "/actions/"

// form executes a form of the page, and redirects back to the page. The caller has authenticated the user
// and verified the form.
func (h handler) form(w http.ResponseWriter, r *http.Request) {
	back := below(r.PostFormValue("back"))
	by := h.Who(r)
	if by == "" {
		h.Refuse(w, http.StatusForbidden, &gates.Fault{Message: "the caller is unknown", Hint: "log in"}, back)
		return
	}
	name := r.PathValue("command")
	if name == "rollout" && h.Rollouts != nil {
		h.rolloutForm(w, r, by, back)
		return
	}
	if name == "accept" && h.Accept != nil {
		h.acceptForm(w, r, by, back)
		return
	}
	do := commands["/api/v1/"+name]
	if do == nil {
		h.Refuse(w, http.StatusNotFound, &gates.Fault{Message: "unknown action", Hint: "go back to the page"}, back)
		return
	}
	in := gates.Request{
		By: by, Target: r.PostFormValue("target"), Pool: r.PostFormValue("pool"), Reason: r.PostFormValue("reason"), For: r.PostFormValue("for"),
		Digest: r.PostFormValue("digest"), Retry: r.PostFormValue("retry") == "true", OverrideWindow: r.PostFormValue("override") == "true",
	}
	if name == "reconcile" && in.Target != "" {
		in.Targets, in.Target = []string{in.Target}, ""
	}
	out, done, err := h.do(r.Context(), name, do, in)
	if err != nil {
		status, told := failed(err)
		h.Refuse(w, status, told, back)
		return
	}
	h.Say(w, strings.Join(append([]string{done.Text + "."}, out.Receipt()...), " "))
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// below returns text if it is a path of the page, otherwise "/".
func below(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") {
		return "/"
	}
	return u.RequestURI()
}

// action describes the effect of a command, for use after the name of the requester.
func action(name string, in gates.Request, out gates.Answer) string {
	switch name {
	case "suspend":
		return fmt.Sprintf("suspended %s until %s: %s", subjectText(in.Target, in.Pool), out.Suspension.Until.UTC().Format("2 Jan 2006 15:04 MST"), out.Suspension.Reason)
	case "resume":
		if len(out.Resumed) == 0 {
			return "resumed " + subjectText(in.Target, in.Pool) + ", which was not suspended"
		}
		return "resumed " + subjectText(in.Target, in.Pool)
	case "approve":
		text := "approved the plan " + out.Approval.Digest[:12]
		if len(out.Plans) > 0 {
			text += " of " + strings.Join(out.Plans, ", ")
		}
		if len(out.Behind) > 0 {
			text += ", although a newer commit is available"
		}
		return text
	case "unapprove":
		text := "withdrew the approval of " + strings.ToLower(strings.TrimSpace(in.Digest))[:12]
		if len(out.Plans) > 0 {
			text += ", the plan of " + strings.Join(out.Plans, ", ")
		}
		return text
	default:
		text := "requested a pass"
		if len(in.Targets) > 0 {
			text += " over " + strings.Join(in.Targets, ", ")
		}
		if in.Retry {
			text += ", with retries of failed steps"
		}
		if in.OverrideWindow {
			text += ", overriding windows"
		}
		if out.Accepted != nil {
			text = "allowed weir to write again, with the remaining suspensions and approvals: " + out.Accepted.Why
		}
		return text
	}
}

func subjectText(target, pool string) string {
	if target == "" {
		return "all targets"
	}
	if pool == "" {
		return target
	}
	return "pool " + pool + " of " + target
}
