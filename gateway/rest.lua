-- What the transcoder leaves undone for REST. This runs on its routes and on no other.

-- The forms of a UTF-8 character beyond ASCII, without overlong ones and surrogates.
local CHARACTERS = {
  "[\194-\223][\128-\191]",
  "\224[\160-\191][\128-\191]",
  "[\225-\236\238\239][\128-\191][\128-\191]",
  "\237[\128-\159][\128-\191]",
  "\240[\144-\191][\128-\191][\128-\191]",
  "[\241-\243][\128-\191][\128-\191][\128-\191]",
  "\244[\128-\143][\128-\191][\128-\191]",
}

-- The message, the type and the code of an error. gRPC statuses have these as HTTP statuses.
local ERRORS = {
  [401] = {"The API key is missing or wrong.", "invalid_request_error", '"invalid_api_key"'},
  [404] = {"There is nothing at this URL.", "invalid_request_error", "null"},
  [429] = {"Too many requests.", "rate_limit_exceeded", '"rate_limit_exceeded"'},
  [501] = {"This operation is not available.", "server_error", "null"},
  [503] = {"The server is temporarily unavailable.", "server_error", "null"},
  [504] = {"The server did not answer in time.", "server_error", "null"},
}
local CLIENT_ERROR = {"The request was refused.", "invalid_request_error", "null"}
local SERVER_ERROR = {"The server had an error.", "server_error", "null"}

-- What everybody on the way is told of an event stream. It is added here: for the server, headers
-- are a message of their own, which takes a round before the first event.
local STREAM_HEADERS = {
  ["cache-control"] = "no-cache, no-transform",
  -- Asks nginx not to collect the events into larger pieces.
  ["x-accel-buffering"] = "no",
}

local function unescape(hex)
  return string.char(tonumber(hex, 16))
end

local function is_utf8(text)
  for _, character in ipairs(CHARACTERS) do
    text = text:gsub(character, ".")
  end
  return not text:find("[\128-\255]")
end

-- `a[]` and `a[0]`, bracketed or percent-encoded, are the repeated field `a`.
local function unbracket(separator, name)
  name = name:gsub("%[%d*%]$", ""):gsub("%%5[Bb]%d*%%5[Dd]$", "")
  return separator .. name
end

local function fail(handle, status)
  local e = ERRORS[status] or (status < 500 and CLIENT_ERROR or SERVER_ERROR)
  local headers = handle:headers()
  headers:replace(":status", tostring(status))
  headers:replace("content-type", "application/json")
  if status == 501 then
    -- The official SDKs ask again after any 5xx that does not say this.
    headers:replace("x-should-retry", "false")
  end
  -- None if metadata were sent and no message; such a call ends with an empty body.
  local body = handle:body(true)
  if body then
    local json = '{"error":{"message":"%s","type":"%s","param":null,"code":%s}}'
    body:setBytes(json:format(e[1], e[2], e[3]))
  end
end

function envoy_on_request(handle)
  -- A body that no rule asks for would be read as the message, and overwrite the path.
  if handle:headers():get(":method") ~= "POST" then
    local body = handle:body()
    if body then
      body:setBytes("")
    end
  end
  -- Not before: waiting for a body makes every object of before useless.
  local headers = handle:headers()
  local path = headers:get(":path")
  if not path:find("[%%%[\128-\255]") then
    return
  end
  -- A proto string cannot hold anything else; the server would fail to read the message.
  if not is_utf8(path:gsub("%%(%x%x)", unescape)) then
    handle:respond({[":status"] = "400"})
    return
  end
  local query = path:find("?", 1, true)
  if query then
    local plain = path:sub(query):gsub("([?&])([^=&]+)", unbracket)
    headers:replace(":path", path:sub(1, query - 1) .. plain)
  end
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local wanted = headers:get("x-http-status")
  headers:remove("x-http-status")
  local grpc_status = headers:get("grpc-status")
  if grpc_status and grpc_status ~= "0" then
    -- Not an answer of a REST method, but a call that ended without one. Its text stays here.
    local status = tonumber(headers:get(":status"))
    -- 499 says that the client has gone. It has not: the server is stopping.
    fail(handle, status == 499 and 503 or status)
  elseif wanted and wanted:find("^[2-5]%d%d$") then
    headers:replace(":status", wanted)
  elseif wanted then
    fail(handle, 500)
  elseif (headers:get("content-type") or ""):find("^text/event%-stream") then
    for name, value in pairs(STREAM_HEADERS) do
      headers:replace(name, value)
    end
  end
end
