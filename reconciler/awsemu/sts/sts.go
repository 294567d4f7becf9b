// Package sts emulates STS, which identifies callers and lets them assume roles.
package sts

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/iam"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// sessionKeyPrefix is the start of the access key ids that AssumeRole issues.
const sessionKeyPrefix = "ASIAEMU"

// SessionKey is an access key that AssumeRole issued.
type SessionKey struct {
	Account string
	Role    string
	RoleID  string
	Session string
	Expires time.Time
}

// Region is the STS part of a region.
type Region struct {
	*world.Region
	Keys     map[string]*SessionKey       // of all accounts
	Accounts func(id string) *iam.Account // initialized on first use
}

// AccountOf returns the account that an access key belongs to.
func AccountOf(keys map[string]*SessionKey, accessKey string, now time.Time, d wire.Dialect) (string, error) {
	if key := keys[accessKey]; key != nil {
		if !now.Before(key.Expires) {
			return "", d.ExpiredKey()
		}
		return key.Account, nil
	}
	if strings.HasPrefix(accessKey, sessionKeyPrefix) {
		return "", d.InvalidKey()
	}
	return iam.DefaultAccount, nil
}

// Caller returns the ARN and the user id of the access key's owner, in a region.
func (r *Region) Caller(accessKey string) (arn, user string) {
	prefix := "arn:" + world.Partition(r.Name)
	if key := r.Keys[accessKey]; key != nil {
		return prefix + ":sts::" + key.Account + ":assumed-role/" + key.Role + "/" + key.Session, key.RoleID + ":" + key.Session
	}
	return prefix + ":iam::" + r.Account + ":user/emulator", "AIDAEMULATOREMULATOR1"
}

type assumeRoleInput struct {
	RoleARN, RoleSessionName string
	DurationSeconds          *int64
	// These fields do not affect the caller's new identity.
	ExternalID, Policy, SourceIdentity string
	Tags                               []world.Tag
}

func (in *assumeRoleInput) Check() error {
	for i, t := range in.Tags {
		if fault := world.TagFault(t.Key, t.Value); fault != "" {
			return wire.QueryDialect().BadParam(fmt.Sprintf("tags.member.%d.Key", i+1), t.Key, fault)
		}
	}
	return nil
}

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns the STS service.
func Service() *wire.Service {
	return wire.NewService("sts", wire.QueryDialect(),
		wire.FormOp("GetCallerIdentity", wire.Reads, getCallerIdentity),
		wire.FormOp("AssumeRole", wire.Reads, assumeRole),
	)
}

func getCallerIdentity(rq *request, _ struct{}) error {
	arn, user := rq.Region.Caller(rq.AccessKey)
	rq.XML.Text("Arn", arn)
	rq.XML.Text("UserId", user)
	rq.XML.Text("Account", rq.Region.Account)
	return nil
}

// parseRoleARN splits arn:aws:iam::123456789012:role/path/name.
func parseRoleARN(arn string) (accountID, path string, ok bool) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || !strings.HasPrefix(parts[1], "aws") || parts[2] != "iam" || parts[3] != "" {
		return "", "", false
	}
	path, ok = strings.CutPrefix(parts[5], "role/")
	ok = ok && len(parts[4]) == 12 && wire.ConsistsOf(parts[4], "0123456789") && path != "" && wire.ConsistsOf(path, wire.Alphanumeric+"_+=,.@/-")
	return parts[4], path, ok
}

func assumeRole(rq *request, in assumeRoleInput) error {
	accountID, path, ok := parseRoleARN(in.RoleARN)
	if !ok {
		return wire.Fail("ValidationError", "%s is invalid", in.RoleARN)
	}
	life := int64(3600)
	if in.DurationSeconds != nil {
		life = *in.DurationSeconds
	}
	ro := rq.Region.Accounts(accountID).Assumable(path, rq.Region.Now())
	if ro == nil {
		return wire.Fail("AccessDenied", "User: arn:aws:iam::%s:user/emulator is not authorized to perform: sts:AssumeRole on resource: %s", rq.Region.Account, in.RoleARN)
	}
	id := sessionKeyPrefix + strings.ToUpper(rq.Region.NewHex("key", 13))
	expires := rq.Region.Now().Add(time.Duration(life) * time.Second).Truncate(time.Second)
	rq.Region.Keys[id] = &SessionKey{Account: accountID, Role: ro.Name, RoleID: ro.ID, Session: in.RoleSessionName, Expires: expires}
	rq.Region.After(expires.Sub(rq.Region.Now())+time.Hour, timerForgetKey, id)

	w := &rq.XML
	w.Open("Credentials")
	w.Text("AccessKeyId", id)
	w.Text("SecretAccessKey", rq.Region.NewHex("secret", 40))
	w.Text("SessionToken", rq.Region.NewHex("session", 64))
	w.Text("Expiration", expires.UTC().Format("2006-01-02T15:04:05Z"))
	w.Close("Credentials")
	w.Open("AssumedRoleUser")
	w.Text("AssumedRoleId", ro.ID+":"+in.RoleSessionName)
	w.Text("Arn", "arn:"+world.Partition(rq.Region.Name)+":sts::"+accountID+":assumed-role/"+ro.Name+"/"+in.RoleSessionName)
	w.Close("AssumedRoleUser")
	return nil
}

// timerForgetKey removes a session key some time after its expiry, so that a late caller still gets the
// error that it expired.
const timerForgetKey = "sts.forget-key"

func forgetKey(r *Region, key string) { delete(r.Keys, key) }

// Timers returns the timed events of STS, by kind.
func Timers() map[string]func(*Region, string) {
	return map[string]func(*Region, string){timerForgetKey: forgetKey}
}
