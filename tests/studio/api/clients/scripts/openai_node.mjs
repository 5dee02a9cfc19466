// OpenAI's SDK for Node speaks, lists models and is refused.
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: 'none' })
const speech = await client.audio.speech.create({
  model: 'gpt-4o-mini-tts',
  voice: 'alloy',
  input: 'The train leaves at seven.',
  response_format: 'wav',
})
const sound = Buffer.from(await speech.arrayBuffer())
if (sound.subarray(0, 4).toString() !== 'RIFF' || sound.length < 20_000) throw new Error(`${sound.length} bytes`)
const models = await client.models.list()
if (!models.data.some(({ id }) => id === 'tts-1')) throw new Error('tts-1 is missing')
try {
  await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: '' })
  throw new Error('an empty text was spoken')
} catch (error) {
  if (!(error instanceof OpenAI.BadRequestError)) throw error
}
