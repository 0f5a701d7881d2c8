package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// authenticator is who may pass to the pages of Listen: whoever has the token. It is asked even on the loopback address, where other users of the
// machine are, and pages of other sites whose name suddenly leads here.
type authenticator struct {
	token  string // empty: everybody, as the file system's rights on the socket have let them in
	public *url.URL
	port   string // that the server listens on; empty: a unix socket
	local  bool   // it listens on the loopback address only
}

// isOwnHost says whether the server goes by the name that a request uses. Without this check a foreign page could have its own name lead to
// this address and read everything.
func (g *authenticator) isOwnHost(req *http.Request) bool {
	if g.public != nil && strings.EqualFold(req.Host, g.public.Host) {
		return true
	}
	host, port, err := net.SplitHostPort(req.Host)
	if err != nil {
		host, port = strings.Trim(req.Host, "[]"), "80"
	}
	if g.port == "" { // curl --unix-socket; what a proxy passes on is --public-url
		return host == "localhost"
	}
	if port != g.port {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return g.local
	}
	to, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	address, ok := to.(*net.TCPAddr)
	ip := net.ParseIP(host)
	return ok && ip != nil && ip.Equal(address.IP)
}

// cookieName differs from database to database: browsers keep one jar for all ports of a host.
func (g *authenticator) cookieName() string {
	sum := sha256.Sum256([]byte("name of the cookie for " + g.token))
	return "runner-" + hex.EncodeToString(sum[:4])
}

// cookieValue proves the token without being it.
func (g *authenticator) cookieValue() string {
	mac := hmac.New(sha256.New, []byte(g.token))
	io.WriteString(mac, "cookie")
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// hasToken says whether a request comes with the token, or the cookie that it was exchanged for.
func (g *authenticator) hasToken(req *http.Request) bool {
	if g.token == "" {
		return true
	}
	if bearer, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok {
		return equal(bearer, g.token)
	}
	cookie, err := req.Cookie(g.cookieName())
	return err == nil && equal(cookie.Value, g.cookieValue())
}

// equal compares in constant time.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// secure says whether the browser speaks TLS: to us, or to the proxy before us.
func (g *authenticator) secure(req *http.Request) bool {
	return req.TLS != nil || g.public != nil && g.public.Scheme == "https"
}

// sessionLength is how long a browser stays signed in.
const sessionLength = 30 * 24 * time.Hour

// login exchanges the token for a cookie.
func (h *handler) login(w http.ResponseWriter, req *http.Request) {
	if !equal(strings.TrimSpace(req.PostFormValue("token")), h.o.auth.token) {
		h.loginPage(w, req, http.StatusUnauthorized, "This is not the token.")
		return
	}
	g := h.o.auth
	http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Value: g.cookieValue(), Path: h.base + "/", MaxAge: int(sessionLength / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.secure(req)})
	http.Redirect(w, req, h.localPath(req.PostFormValue("next")), http.StatusSeeOther)
}

// localPath is a place to go back to, if it is one of ours; else the first page.
func (h *handler) localPath(place string) string {
	u, err := url.Parse(place)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || strings.ContainsAny(place, "\\\r\n\t") || strings.HasPrefix(place, "//") ||
		!strings.HasPrefix(u.Path, h.base+"/") || strings.HasPrefix(u.Path, h.base+"/login") {
		return h.base + "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

type loginView struct {
	page
	Wrong, Next string
}

func (h *handler) loginPage(w http.ResponseWriter, req *http.Request, status int, wrong string) {
	next := h.base + req.URL.RequestURI()
	if req.URL.Path == "/login" {
		next = req.FormValue("next")
	}
	h.writePage(w, req, status, "login", &loginView{page: h.newPage(req, "Sign in", ""), Wrong: wrong, Next: h.localPath(next)})
}
