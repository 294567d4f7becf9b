package awsemu

import (
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// defaultAccount is the account of every access key that STS did not hand out.
const defaultAccount = "000000000000"

// sessionKeyPrefix begins the access key ids that AssumeRole hands out.
const sessionKeyPrefix = "ASIAEMU"

// sessionKey is an access key that AssumeRole handed out.
type sessionKey struct {
	Account string
	Role    string
	RoleID  string
	Session string
	Expires time.Time
}

// callerAccount returns the account that an access key belongs to.
func (s *Server) callerAccount(accessKey string, sv *service) (string, error) {
	if key := s.state.Keys[accessKey]; key != nil {
		if !s.now.Before(key.Expires) {
			return "", sv.dialect.expiredKey()
		}
		return key.Account, nil
	}
	if len(accessKey) >= len(sessionKeyPrefix) && accessKey[:len(sessionKeyPrefix)] == sessionKeyPrefix {
		return "", sv.dialect.invalidKey()
	}
	return defaultAccount, nil
}

type assumeRoleInput struct {
	roleARN string
	session string
	seconds *int64
}

// stsService is STS: who a caller is, and leave to be someone else.
func stsService() *service {
	sv := &service{
		Service: model.Services()["sts"], dialect: queryDialect(),
		timers: map[string]timerFunc{timerForgetKey: forgetKey},
	}
	sv.register(
		queryOp("GetCallerIdentity", reads, func(*params) struct{} { return struct{}{} }, getCallerIdentity),
		queryOp("AssumeRole", reads, parseAssumeRole, assumeRole),
	)
	return sv
}

func getCallerIdentity(rq *request, _ struct{}) error {
	accountID := rq.region.Account
	arn, user := "arn:"+partition(rq.region.Name)+":iam::"+accountID+":user/emulator", "AIDAEMULATOREMULATOR1"
	if key := rq.srv.state.Keys[rq.accessKey]; key != nil {
		arn = "arn:" + partition(rq.region.Name) + ":sts::" + accountID + ":assumed-role/" + key.Role + "/" + key.Session
		user = key.RoleID + ":" + key.Session
	}
	rq.xml.text("Arn", arn)
	rq.xml.text("UserId", user)
	rq.xml.text("Account", accountID)
	return nil
}

func parseAssumeRole(p *params) assumeRoleInput {
	in := assumeRoleInput{
		roleARN: p.text("RoleArn"),
		session: p.text("RoleSessionName"),
		seconds: p.optionalInt("DurationSeconds"),
	}
	// What these say does not change who the caller becomes.
	for _, name := range []string{"ExternalId", "Policy", "SourceIdentity"} {
		p.text(name)
	}
	for _, t := range p.list("Tags") {
		if fault := tagFault(t.text("Key"), t.text("Value")); fault != "" {
			t.bad("Key", t.text("Key"), fault)
		}
	}
	return in
}

// parseRoleARN splits arn:aws:iam::123456789012:role/path/name.
func parseRoleARN(arn string) (accountID, path string, ok bool) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || !strings.HasPrefix(parts[1], "aws") || parts[2] != "iam" || parts[3] != "" {
		return "", "", false
	}
	path, ok = strings.CutPrefix(parts[5], "role/")
	ok = ok && len(parts[4]) == 12 && consistsOf(parts[4], "0123456789") && path != "" && consistsOf(path, alphanumeric+"_+=,.@/-")
	return parts[4], path, ok
}

func assumeRole(rq *request, in assumeRoleInput) error {
	accountID, path, ok := parseRoleARN(in.roleARN)
	if !ok {
		return fail("ValidationError", "%s is invalid", in.roleARN)
	}
	life := int64(3600)
	if in.seconds != nil {
		life = *in.seconds
	}
	ro := rq.srv.account(accountID).assumable(path)
	if ro == nil {
		return fail("AccessDenied", "User: arn:aws:iam::%s:user/emulator is not authorized to perform: sts:AssumeRole on resource: %s", rq.region.Account, in.roleARN)
	}
	id := sessionKeyPrefix + upperHex(rq.region.newHex("key", 13))
	expires := rq.region.now().Add(time.Duration(life) * time.Second).Truncate(time.Second)
	rq.srv.state.Keys[id] = &sessionKey{Account: accountID, Role: ro.Name, RoleID: ro.ID, Session: in.session, Expires: expires}
	rq.region.after(expires.Sub(rq.region.now())+time.Hour, timerForgetKey, id)

	w := &rq.xml
	w.open("Credentials")
	w.text("AccessKeyId", id)
	w.text("SecretAccessKey", rq.region.newHex("secret", 40))
	w.text("SessionToken", rq.region.newHex("session", 64))
	w.text("Expiration", expires.UTC().Format("2006-01-02T15:04:05Z"))
	w.close("Credentials")
	w.open("AssumedRoleUser")
	w.text("AssumedRoleId", ro.ID+":"+in.session)
	w.text("Arn", "arn:"+partition(rq.region.Name)+":sts::"+accountID+":assumed-role/"+ro.Name+"/"+in.session)
	w.close("AssumedRoleUser")
	return nil
}

// timerForgetKey forgets a session key some time after it expired, so that a
// late caller is still told that it expired.
const timerForgetKey = "sts.forget-key"

func forgetKey(r *region, key string) { delete(r.srv.state.Keys, key) }
